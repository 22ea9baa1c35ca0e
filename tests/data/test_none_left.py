"""Where no pairs are left to learn from, the reason is given and a remedy that works."""

from pathlib import Path

import pytest

from heed.data.clean import CleanReport
from heed.data.corpus import Corpus, DataConfig
from heed.data.none_left import all_dropped
from heed.data.prepare import prepare
from heed.data.prepared import Prepared
from heed.data.readers import Pair, ParallelFiles
from heed.errors import DataError
from heed.text.vocab import TokenizerConfig

Texts = list[tuple[str, str]]

GOOD = [(f"sentence {n} is good", f"Satz {n} ist gut") for n in range(30)]
GIVE_PAIRS = r"Give more pairs, or other pairs for dev with --dev-src and --dev-tgt\."


def parts(folder: Path, texts: Texts, name: str) -> tuple[ParallelFiles, ...]:
    paths = [folder / f"{name}.{lang}" for lang in ("en", "de")]
    for path, lines in zip(paths, zip(*texts, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = tuple(map(str, paths))
    return (ParallelFiles(files=files, source_lang="en", target_lang="de"),)


def run(folder: Path, texts: Texts, dev: Texts | None = None, **settings: int) -> Prepared:
    return prepare(
        Corpus(train=parts(folder, texts, "x"), dev=parts(folder, dev, "dev") if dev else ()),
        folder / "data",
        config=DataConfig(**settings),
        tokenizer=TokenizerConfig(kind="char"),
        seed=1,
    )


def test_one_pair_needs_others_or_a_dev_set(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"left: of 1 usable pair all went to dev\. {GIVE_PAIRS}$"):
        run(tmp_path, GOOD[:1])
    dropped = r"Of 7 pairs read, 6 were dropped \(duplicate 4, empty 2\)\. "
    with pytest.raises(DataError, match=rf"all went to dev\. {dropped}{GIVE_PAIRS}$"):
        run(tmp_path, [*GOOD[:1] * 5, ("", "a"), ("a", "")])
    # Both remedies work.
    assert len(run(tmp_path, GOOD[:1], dev=GOOD[1:3]).train) == 1
    (tmp_path / "more").mkdir()
    assert len(run(tmp_path / "more", GOOD[:2]).train) == 1


def test_sizes_that_take_all_pairs_are_to_be_lowered(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"of 4 usable pairs all went to dev\. Lower data\.dev_size"
    ):
        run(tmp_path, GOOD[:4], dev_size=4)
    with pytest.raises(
        DataError, match=r"to dev and test\. Lower data\.dev_size and data\.test_size, or"
    ):
        run(tmp_path, GOOD[:4], dev_size=2, test_size=2)
    with pytest.raises(DataError, match=r"to dev and test\. Lower data\.test_size, or"):
        run(tmp_path, GOOD[:4], test_size=3)
    with pytest.raises(
        DataError, match=r"of 1 usable pair all went to test\. Lower data\.test_size"
    ):
        run(tmp_path, GOOD[:1], dev=GOOD[5:9], test_size=1)
    assert len(run(tmp_path, GOOD[:4], dev_size=1, test_size=1).train) == 2


def test_pairs_of_which_no_dev_set_can_be_drawn_need_one(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"from 3 usable pairs that share their sentences\. Give one with --dev-src"
    ):
        run(tmp_path, [("one", text) for text in ("eins", "ein", "einer")])
    with pytest.raises(
        DataError,
        match=r"from 1 usable pair: it went to test\. "
        r"Give one with --dev-src and --dev-tgt, and lower data\.test_size\.$",
    ):
        run(tmp_path, GOOD[:1], test_size=1)
    with pytest.raises(
        DataError, match=r"30 usable pairs: they all went to test\. Lower data\.test"
    ):
        run(tmp_path, GOOD, test_size=30)
    (tmp_path / "lower").mkdir()
    assert len(run(tmp_path / "lower", GOOD, test_size=28).train) == 1
    # Those of one sentence would all go to dev, however it is sized.
    with pytest.raises(DataError, match=rf"of 2 usable pairs all went to dev\. {GIVE_PAIRS}"):
        run(tmp_path, [("one", "eins"), ("one", "ein")], dev_size=2)


@pytest.mark.parametrize(
    ("texts", "settings", "said"),
    [
        ([(s, s) for s, _ in GOOD], {}, "all 30 were dropped (copy 30). copy: source and target"),
        ([("Hi", "hi")], {}, "the only one was dropped (copy 1). copy: source and target are the"),
        ([("", "a"), ("b", ""), ("c", "c")], {}, "(empty 2, copy 1). empty: a side has no text."),
        ([("schÃ¶n", "nice")], {}, "bad_encoding: text was once read in a wrong encoding"),
        (GOOD, {"max_chars": 3}, "too_long: a side has more than 3 characters."),
        ([("a" * 99, "b")] * 3, {}, "length_ratio: a side is over 4 times as long as usual"),
    ],
)
def test_the_most_frequent_rule_is_explained(
    tmp_path: Path, texts: Texts, settings: dict[str, int], said: str
) -> None:
    with pytest.raises(DataError) as refused:
        run(tmp_path, texts, **settings)
    assert said in str(refused.value)
    assert str(refused.value).startswith(f"{tmp_path}/x.en and {tmp_path}/x.de must hold usable")


def test_pairs_that_are_all_in_the_dev_set_are_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"in_dev: a sentence is also in the development set\."):
        run(tmp_path, GOOD, dev=GOOD)


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        ("too_long", "raise data.max_chars."),
        ("length_ratio", "raise data.max_ratio."),
        ("copy", "set data.keep_copies=true."),
    ],
)
def test_a_setting_that_keeps_such_pairs_is_named(rule: str, key: str) -> None:
    report = CleanReport(n_read=1)
    report.drop(rule, Pair("a", "b"))
    assert str(all_dropped("x", report, DataConfig())).endswith(key)


RULES = "empty bad_encoding unknown_entity too_long length_ratio copy in_dev in_test"


@pytest.mark.parametrize("rule", RULES.split())
def test_every_rule_that_may_drop_all_has_an_explanation(rule: str) -> None:
    report = CleanReport(n_read=3)
    for reason in ("other", rule, rule):
        report.drop(reason, Pair("a", "b"))
    assert f"dropped (other 1, {rule} 2). {rule}: " in str(all_dropped("x", report, DataConfig()))


def test_pairs_with_too_many_pieces_name_the_setting_of_each_rule(tmp_path: Path) -> None:
    few = r"has more than 3 pieces on a side\. Of 31 pairs read, 30 were dropped \(empty 1, "
    with pytest.raises(DataError, match=rf"{few}too_many_pieces 29\)\. Raise data\.max_length\.$"):
        run(tmp_path, [*GOOD, ("", "a")], max_length=4)
    with pytest.raises(
        DataError,
        match=r"\(too_long 29, too_many_pieces 1\)\. Raise data\.max_length, and "
        r"data\.max_chars for those with more than 30 characters\.$",
    ):
        run(
            tmp_path,
            [*GOOD[:2], *[(s * 3, t * 3) for s, t in GOOD[1:]]],
            max_length=4,
            max_chars=30,
        )
