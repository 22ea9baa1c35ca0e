"""Recipes: read, overridden, checked all at once, written back."""

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.config import (
    Choices,
    Range,
    build_config,
    check,
    parse_duration,
    parse_override,
    read_toml,
    to_toml,
)
from heed.data.clean import CleanConfig
from heed.data.corpus import DataConfig
from heed.decode.options import DecodeOptions
from heed.errors import ConfigError
from heed.model.families import FAMILIES
from heed.text.vocab import TokenizerConfig
from heed.train.recipe.asked import Asked
from heed.train.step.config import TrainConfig

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Model:
    d_model: Annotated[int, Range(1, 2**62)] = 256
    dropout: float = 0.1
    norm: Literal["pre", "post"] = "post"
    bias: bool = True

    def __post_init__(self) -> None:
        check(self, "model")


@dataclass(frozen=True, kw_only=True)
class Data:
    train: str
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Training:
    time_s: float | None = 60.0
    max_steps: int | None = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    title: str = ""
    data: Data
    model: Model = field(default_factory=Model)
    training: Training | None = None


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
        return tmp_path / "recipe.toml"

    return write


Write = Callable[[str], Path]


def load_config(cls: type[T], path: Path | None = None, overrides: Iterable[str] = ()) -> T:
    """A recipe file and overrides as `heed train` puts them together."""
    asked = Asked(read_toml(path), where=str(path)) if path else Asked()
    for text in overrides:
        asked = asked.plus(*parse_override(text))
    return build_config(cls, asked.values, where=asked.where, without=asked.not_there)


def test_a_recipe_is_read_with_defaults_for_what_it_leaves_out(write: Write) -> None:
    recipe = load_config(
        Recipe,
        write(
            'title = "t"\n[data]\ntrain = "c.tsv"\nlanguages = ["de", "fr"]\n[model]\ndropout = 0\n'
        ),
    )
    assert recipe == Recipe(
        title="t",
        data=Data(train="c.tsv", languages=("de", "fr")),
        model=Model(dropout=0.0),
    )
    assert isinstance(recipe.model.dropout, float)


def test_overrides_win_and_are_spelled_as_toml_or_as_bare_words(write: Write) -> None:
    recipe = load_config(
        Recipe,
        write('[data]\ntrain = "c.tsv"\n[model]\nd_model = 512\n'),
        [
            "model.d_model=128",
            "model.bias = false",
            "model.norm=pre",
            "data.train=other corpus.tsv",
            'data.languages=["no"]',
            "training.time_s=30min",
        ],
    )
    assert recipe.model == Model(d_model=128, bias=False, norm="pre")
    assert recipe.data == Data(train="other corpus.tsv", languages=("no",))
    assert recipe.training == Training(time_s=1800.0)


def test_none_can_be_said(write: Write) -> None:
    recipe = load_config(
        Recipe, write('[data]\ntrain = "none"\n[training]\n'), ["training.time_s=none"]
    )
    assert recipe.training == Training(time_s=None)
    assert recipe.data.train == "none", "where None is no choice, the word is a word"


def test_a_value_with_a_line_break_cannot_smuggle_in_a_second_setting() -> None:
    recipe = load_config(Recipe, None, ["data.train=1\nvalue2 = 3"])
    assert recipe.data.train == "1\nvalue2 = 3"


@pytest.mark.parametrize("text", ["model.d_model", "=3", "model..x=1", ".x=1"])
def test_a_malformed_override_is_shown(text: str) -> None:
    with pytest.raises(ConfigError, match="an override is written section.key=value, but not"):
        load_config(Recipe, None, [text])


def test_an_override_inside_a_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"data.train.x is a setting of train, which is not"):
        load_config(Recipe, None, ["data.train=1", "data.train.x=2"])


def test_an_unknown_key_names_the_nearest(write: Write) -> None:
    path = write('[data]\ntrain = "c"\n[model]\nd_modle = 256\n')
    with pytest.raises(ConfigError) as caught:
        load_config(Recipe, path)
    assert str(caught.value) == (
        f"{path}: model.d_modle is not a setting; did you mean model.d_model?"
    )


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one() -> None:
    with pytest.raises(ConfigError, match=r"^d_model is not .*; did you mean model.d_model\?"):
        build_config(Recipe, {"data": {"train": "c"}, "d_model": 3})


def test_a_key_like_no_other_lists_what_there_is() -> None:
    with pytest.raises(ConfigError, match=r"training.qqq is not a setting \(time_s, max_steps are"):
        build_config(Recipe, {"data": {"train": "c"}, "training": {"qqq": 3}})


def test_all_mistakes_are_told_at_once_and_overrides_are_not_blamed_on_the_file(
    write: Write,
) -> None:
    path = write('titel = "x"\n[model]\nd_model = "wide"\ndropout = true\nnorm = "mid"\nbias = 1\n')
    with pytest.raises(ConfigError) as caught:
        load_config(Recipe, path, ["training.max_steps=1.5"])
    assert str(caught.value).splitlines() == [
        "7 settings are wrong:",
        f"  {path}: titel is not a setting; did you mean title?",
        f"  {path}: data.train is missing.",
        f"  {path}: model.d_model must be a whole number from 1 to {2**62}, but is 'wide'.",
        f"  {path}: model.dropout must be a number, but is True.",
        f"  {path}: model.norm must be one of pre, post, but is 'mid'.",
        f"  {path}: model.bias must be true or false, but is 1.",
        "  training.max_steps must be a whole number, but is 1.5.",
    ]


def test_a_number_in_quotes_is_no_number() -> None:
    with pytest.raises(ConfigError, match=r"model.d_model must be a whole .* is '256'"):
        build_config(Recipe, {"data": {"train": "c"}, "model": {"d_model": "256"}})


def test_a_section_must_be_one() -> None:
    with pytest.raises(ConfigError, match="model must be a section, but is 3"):
        build_config(Recipe, {"data": {"train": "c"}, "model": 3})


def test_what_a_dataclass_refuses_is_told_with_the_file(write: Write) -> None:
    path = write('[data]\ntrain = "c"\n[model]\nd_model = 0\n')
    with pytest.raises(ConfigError) as caught:
        load_config(Recipe, path)
    assert (
        str(caught.value)
        == f"{path}: model.d_model must be a whole number from 1 to {2**62}, but is 0."
    )


def test_a_file_that_is_no_toml_is_named_with_the_line(write: Write) -> None:
    with pytest.raises(ConfigError, match=r"recipe.toml is not valid TOML: .*line 2"):
        load_config(Recipe, write("a = 1\nb = \n"))
    with pytest.raises(ConfigError, match="nested too deeply"):
        read_toml(write("a = " + "[" * 100_000))
    with pytest.raises(ConfigError, match="recipe.toml is larger than 1048576 bytes"):
        read_toml(write("#" * (1 << 20) + "#"))
    path = write("")
    path.write_bytes(b"a = '\xff'")
    with pytest.raises(ConfigError, match="recipe.toml is not valid TOML: 'utf-8'"):
        read_toml(path)


def test_a_byte_order_mark_before_toml_is_no_mistake(write: Write) -> None:
    assert read_toml(write("\ufeffa = 1\n")) == {"a": 1}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere.toml cannot be read: No such file"):
        load_config(Recipe, tmp_path / "nowhere.toml")


@dataclass(frozen=True, kw_only=True)
class Settings:
    whole: Annotated[int, Range(1, 9, "Use 1.")] = 1
    share: Annotated[float, Range(0, 1, above_low=True, below_high=True)] = 0.5
    perhaps: Annotated[int | None, Range(1, 9)] = None
    metric: Annotated[str, Choices(["bleu", "chrf"])] = "bleu"
    ids: tuple[Annotated[int, Range(0, 9)], ...] = ()
    switch: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        check(self, "s")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"whole": 0}, "s.whole must be a whole number from 1 to 9, but is 0. Use 1."),
        ({"whole": 10}, "s.whole must be a whole number from 1 to 9, but is 10. Use 1."),
        ({"whole": None}, "s.whole must be a whole number from 1 to 9, but is None. Use 1."),
        ({"whole": 1.0}, "s.whole must be a whole number from 1 to 9, but is 1.0. Use 1."),
        ({"whole": True}, "s.whole must be a whole number from 1 to 9, but is True. Use 1."),
        ({"share": 0}, "s.share must be a number above 0 and below 1, but is 0."),
        ({"share": 1.0}, "s.share must be a number above 0 and below 1, but is 1.0."),
        ({"share": float("nan")}, "s.share must be a number above 0 and below 1, but is nan."),
        ({"share": "0.5"}, "s.share must be a number above 0 and below 1, but is '0.5'."),
        ({"perhaps": 0}, "s.perhaps must be a whole number from 1 to 9, but is 0."),
        ({"metric": "ter"}, "s.metric must be one of bleu, chrf, but is 'ter'."),
        ({"metric": ["bleu"]}, "s.metric must be one of bleu, chrf, but is ['bleu']."),
        (
            {"ids": (1, 10)},
            "s.ids must be a list, each a whole number from 0 to 9, but is (1, 10).",
        ),
        ({"ids": 1}, "s.ids must be a list, each a whole number from 0 to 9, but is 1."),
        ({"switch": 1}, "s.switch must be true or false, but is 1."),
        ({"name": 1}, "s.name must be text, but is 1."),
    ],
)
def test_every_field_is_checked_against_its_annotation(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Settings(**changes)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "changes",
    [{"whole": 9}, {"share": 0.001}, {"perhaps": 9}, {"metric": "chrf"}, {"ids": [0, 9]}],
)
def test_the_ends_of_a_range_are_in_it(changes: dict[str, Any]) -> None:
    Settings(**changes)


@given(
    title=st.text(),
    train=st.text(),
    dropout=st.floats(allow_nan=False),
    d_model=st.integers(1, 2**62),
    languages=st.lists(st.text()),
    time_s=st.none() | st.floats(0, 1e9),
)
@settings(max_examples=60)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    title: str,
    train: str,
    dropout: float,
    d_model: int,
    languages: list[str],
    time_s: float | None,
) -> None:
    recipe = Recipe(
        title=title,
        data=Data(train=train, languages=tuple(languages)),
        model=Model(dropout=dropout, d_model=d_model, bias=False),
        training=Training(time_s=time_s),
    )
    path = tmp_path_factory.getbasetemp() / "recipe.toml"
    path.write_bytes(to_toml(recipe).encode())
    assert load_config(Recipe, path) == recipe


def test_the_written_form_is_plain_toml() -> None:
    recipe = Recipe(data=Data(train='a "b"'), training=Training(time_s=None))
    assert to_toml(recipe) == (
        'title = ""\n\n[data]\ntrain = "a \\"b\\""\nlanguages = []\n\n'
        '[model]\nd_model = 256\ndropout = 0.1\nnorm = "post"\nbias = true\n\n'
        '[training]\ntime_s = "none"\n'
    )


def test_nested_dicts_are_written_as_sections() -> None:
    values = {"preset": "tiny", "model": {"norm": "pre"}, "training": {"time_s": "5m", "seed": 3}}
    assert tomllib.loads(to_toml(values)) == values
    assert to_toml(values).startswith('preset = "tiny"\n\n[model]\nnorm = "pre"\n')
    assert to_toml({}) == "\n"


def test_a_value_toml_cannot_hold_is_our_mistake() -> None:
    with pytest.raises(TypeError, match="no TOML for object"):
        to_toml(Training(time_s=object()))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("30min", 1800),
        ("60m", 3600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        ("1.5H", 5400),
        ("1d", 86400),
        ("45", 45),
        (45, 45),
        (0.5, 0.5),
    ],
)
def test_durations_are_read(text: str | float, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "2 weeks", "1h30", "-5m", "5m later", "1e3", "m5", "٣s x"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="a duration is written like 90s, 30min, 2h or 1h30m"):
        parse_duration(text)


def test_a_bad_duration_is_told_with_its_key() -> None:
    with pytest.raises(ConfigError, match="^training.time_s: a duration .* but not 'soon'"):
        build_config(Recipe, {"data": {"train": "c"}, "training": {"time_s": "soon"}})


def test_a_number_of_more_than_64_bits_is_no_setting(write: Callable[[str], Path]) -> None:
    # Python refuses to print a number of more than 4300 digits, so no message could show it.
    with pytest.raises(ConfigError, match="is not valid TOML: a whole number has more than 64 bit"):
        read_toml(write(f"[model]\nd_model = [0, {{a = 0x{'f' * 5000}}}]"))
    with pytest.raises(ConfigError, match=r"model\.d_model must be a whole .*, but is '0xfff"):
        load_config(Recipe, overrides=[f"model.d_model=0x{'f' * 5000}", "data.train=x"])
    assert read_toml(write(f"seed = {2**64 - 1}")) == {"seed": 2**64 - 1}


def test_mistakes_that_the_caller_found_are_told_with_the_others() -> None:
    with pytest.raises(ConfigError) as caught:
        build_config(Model, {"d_model": 0}, where="r.toml", also_wrong=["preset is no table."])
    assert str(caught.value).splitlines()[1] == "  r.toml: preset is no table."


MODELS = [family.config for family in FAMILIES.values()]
SETTINGS = [*MODELS, TrainConfig, DataConfig, CleanConfig, TokenizerConfig, DecodeOptions]


@pytest.mark.parametrize("config", SETTINGS, ids=lambda config: config.__name__)
def test_every_setting_is_described_and_limited(config: type[Any]) -> None:
    """In its class, or in one that it extends."""
    classes = [each for each in config.__mro__ if is_dataclass(each)]
    described = "".join((each.__doc__ or "").partition("Attributes:")[2] for each in classes)
    for name, hint in get_type_hints(config, include_extras=True).items():
        assert re.search(rf"^        (\w+, )*{name}(, \w+)*:", described, re.MULTILINE), name
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        assert int not in kinds and float not in kinds, f"{name} has no Range"
