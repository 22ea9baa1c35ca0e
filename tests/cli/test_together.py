"""`--with`: several models translate together, as `heed.load` of a list of folders does."""

import copy
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heed
from heed.bundle.bundle import load_bundle, save_bundle
from heed.bundle.find import find_model_folder
from heed.errors import ConfigError, UsageError
from heed.model.build import build_model
from heed.model.recurrent.config import RecurrentConfig
from heed.text.vocab import train_vocab
from heed.translate.lines import MAX_SOURCE_TOKENS

Call = Callable[..., tuple[int, str, str]]
TEXT, TGT = "A man is riding a bike.", "Ein Mann fährt Fahrrad."


@pytest.fixture
def other(model: str, tmp_path: Path) -> str:
    """A model of the same vocabulary, with other weights."""
    read = load_bundle(model)
    random = np.random.default_rng(4)
    weights = {
        name: (weight + random.normal(0, 0.3, weight.shape)).astype(np.float32)
        for name, weight in read.weights.items()
    }
    save_bundle(tmp_path / "other", replace(read, weights=weights))
    return str(tmp_path / "other")


@pytest.fixture
def recurrent(model: str, tmp_path: Path) -> str:
    """A recurrent model of the same vocabulary, which torch computes."""
    import torch

    read = load_bundle(model)
    torch.manual_seed(5)
    sizes = {"src_vocab_size": read.src_vocab.size, "tgt_vocab_size": read.tgt_vocab.size}
    config = RecurrentConfig(**sizes, d_model=8)
    weights = {name: w.numpy() for name, w in build_model(config).state_dict().items()}
    save_bundle(tmp_path / "recurrent", replace(read, config=config, weights=weights))
    return str(tmp_path / "recurrent")


@pytest.mark.parametrize("kind", ["other", "recurrent"])
def test_scores_are_logs_of_mean_probabilities(
    model: str, kind: str, request: pytest.FixtureRequest
) -> None:
    """Token by token, whatever computes the models."""
    other = request.getfixturevalue(kind)
    apart = [heed.load(path, threads=1).score([TEXT], [TGT])[0] for path in (model, other)]
    together = heed.load([model, other], threads=1).score([TEXT], [TGT])[0]
    expected = np.log(np.mean([np.exp(each.token_scores) for each in apart], axis=0))
    np.testing.assert_allclose(together.token_scores, expected, atol=1e-5)
    for path in (model, other):
        assert together.log_prob != pytest.approx(heed.load(path).score([TEXT], [TGT])[0].log_prob)


def test_translate_and_next_word_read_all_models(call: Call, model: str, other: str) -> None:
    code, out, err = call("translate", "-m", model, "--with", other, "--format", "jsonl", TEXT)
    assert code == 0, err
    found = heed.load([model, other]).translate([TEXT])[0]
    assert json.loads(out)["score"] == pytest.approx(found.score, abs=1e-5)
    code, out, err = call("next-word", "-m", model, "--with", other, TEXT)
    assert code == 0, err
    apart = [heed.load(path).next_word(TEXT, k=330) for path in (model, other)]
    first = heed.load([model, other]).next_word(TEXT, k=1)[0]
    mean = np.mean([{t.token: t.probability for t in each}[first.token] for each in apart])
    assert first.probability == pytest.approx(mean, abs=1e-5)
    assert out.split()[:2] == [f"{first.probability:.4f}", first.token]


def test_evaluate_names_all_models(call: Call, model: str, other: str, tmp_path: Path) -> None:
    (tmp_path / "src").write_text(f"{TEXT}\n")
    files = ("--src", str(tmp_path / "src"), "--ref", str(tmp_path / "src"))
    code, out, err = call("evaluate", "-m", model, "--with", other, *files)
    assert code == 0, err
    assert f"{model} + {other}" in out


def test_a_copy_translates_the_same(model: str, other: str) -> None:
    together = heed.load([model, other], threads=1)
    found = together.translate([TEXT])
    assert pickle.loads(pickle.dumps(together)).translate([TEXT]) == found
    assert copy.deepcopy(together).translate([TEXT]) == found


def test_an_error_names_the_model(call: Call, model: str, recurrent: str) -> None:
    code, _, err = call("translate", "-m", model, "--with", recurrent, "--runtime=engine", TEXT)
    assert code == 1
    assert err.startswith(f"heed: {recurrent}: ")


@pytest.mark.parametrize("command", ["translate", "distill"])
def test_an_empty_name_is_refused(call: Call, model: str, tmp_path: Path, command: str) -> None:
    """As of a variable that is not set."""
    out = str(tmp_path / "out")
    flags = {"translate": ["-m", model, TEXT], "distill": [model, "--out", out]}[command]
    code, _, err = call(command, *flags, "--with", "")
    assert code == 2
    assert "'--with': the name is empty" in err


def test_a_language_that_is_not_known_fits_all(model: str, tmp_path: Path) -> None:
    read = load_bundle(model)
    save_bundle(tmp_path / "any", replace(read, source_lang="", target_lang=""))
    assert heed.load([model, tmp_path / "any"]).target_lang == "de"


def test_a_model_without_tags_does_not_fit_one_with_tags(model: str, tmp_path: Path) -> None:
    """One of them would read sources that are unlike those it learned from."""
    read = load_bundle(model)
    save_bundle(tmp_path / "tags", replace(read, target_langs=("de", "zh")))
    save_bundle(tmp_path / "any", replace(read, source_lang="", target_lang=""))
    for names in (("tags", "any"), ("any", "tags")):
        with pytest.raises(ConfigError, match="need the same languages"):
            heed.load([tmp_path / name for name in names])


def test_models_of_both_directions_fit_whichever_was_named_first(
    model: str, tmp_path: Path
) -> None:
    both = replace(load_bundle(model), target_langs=("de", "zh"))
    for source, target in (("de", "zh"), ("zh", "de")):
        save_bundle(tmp_path / source, replace(both, source_lang=source, target_lang=target))
    assert heed.load([tmp_path / "de", tmp_path / "zh"]).target_lang == "zh"


def test_the_shortest_longest_source_holds(model: str, tmp_path: Path) -> None:
    """Also that of a model which does not say it."""
    read = load_bundle(model)
    for longest in (100, 1000):
        decoding = {**read.decoding, "max_source_tokens": longest}
        save_bundle(tmp_path / str(longest), replace(read, decoding=decoding))
    for longest, expected in ((100, 100), (1000, MAX_SOURCE_TOKENS)):
        together = heed.load([tmp_path / str(longest), model])
        assert together.reader.max_source_tokens == expected


def test_a_list_of_one_is_that_model(model: str) -> None:
    assert heed.load([model]).score([TEXT], [TGT]) == heed.load(model).score([TEXT], [TGT])
    assert heed.load([model]).twin is not None


def test_models_that_do_not_fit_are_refused(call: Call, model: str, tmp_path: Path) -> None:
    read = load_bundle(model)
    vocab = train_vocab([TEXT, "zwölf Boxkämpfer jagen"] * 9, size=300)
    sizes = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size}
    weights = {name: weight[: vocab.size] for name, weight in read.weights.items()}
    config = replace(read.config, **sizes)  # type: ignore[type-var]
    pieces = {"config": config, "weights": weights}
    save_bundle(tmp_path / "pieces", replace(read, src_vocab=vocab, tgt_vocab=vocab, **pieces))
    save_bundle(tmp_path / "back", replace(read, source_lang="de", target_lang="en"))
    code, out, err = call("translate", "-m", model, "--with", str(tmp_path / "pieces"), TEXT)
    assert (code, out) == (1, "")
    assert f"{tmp_path / 'pieces'} has another vocabulary than {model}" in err
    assert f"tokenizer.vocab_from={model}" in err
    with pytest.raises(ConfigError, match="back translates from de to en, but .* from en to de"):
        heed.load([model, tmp_path / "back"])
    for name, directions in (("some", (("en", "de"), ("zh", "de"))), ("all", (("en", "de"),))):
        own = replace(read, source_lang="", directions=directions)
        save_bundle(tmp_path / name, own)
    with pytest.raises(ConfigError, match="all translates from en to de, but .* and from zh to de"):
        heed.load([tmp_path / "some", tmp_path / "all"])
    with pytest.raises(UsageError, match="empty list"):
        heed.load([])
    with pytest.raises(UsageError, match="must be the path of a model folder, but is 3"):
        heed.load([model, 3])


@pytest.mark.parametrize("command", ["choose-heads", "calibrate"])
def test_what_is_stored_in_one_model_is_found_with_one(
    call: Call, model: str, other: str, command: str
) -> None:
    code, _, err = call(command, "-m", model, "--with", other)
    assert code == 2
    assert "there is no option --with" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--hyp", "FILE", "--ref", "FILE"], "--with is for a model: give -m RUN"),
        (["-m", "MODEL", "--text", "FILE"], "--with is for translations only"),
    ],
)
def test_a_flag_without_effect_is_refused(
    call: Call, model: str, other: str, tmp_path: Path, flags: list[str], words: str
) -> None:
    (tmp_path / "file").write_text(f"{TEXT}\n")
    places = {"FILE": str(tmp_path / "file"), "MODEL": model}
    code, _, err = call("evaluate", *(places.get(flag, flag) for flag in flags), "--with", other)
    assert code == 2
    assert words in err


def test_no_file_of_any_model_is_overwritten(call: Call, model: str, other: str) -> None:
    target = str(find_model_folder(Path(other)) / "config.json")
    before = Path(target).read_bytes()
    code, _, err = call("translate", "-m", model, "--with", other, "-o", target, TEXT)
    assert code != 0
    assert target in err
    assert Path(target).read_bytes() == before


def test_several_models_are_neither_traced_nor_edited(model: str, other: str) -> None:
    together = heed.load([model, other])
    with pytest.raises(UsageError, match="Only one model"):
        together.trace(TEXT)
    with pytest.raises(UsageError, match="Only one model"), together.edit({}):
        pass


def test_attention_is_that_of_the_first(model: str, other: str) -> None:
    first = heed.load([model, other]).align(TEXT, TGT)
    assert first == heed.load(model).align(TEXT, TGT)


def test_a_batch_answers_as_each_text_alone(model: str, other: str) -> None:
    """Bit for bit, in the engine and with two threads."""
    together = heed.load([model, other], threads=2)
    texts: list[Any] = [TEXT, "Two dogs play in the snow.", "纽约是一座城市", TEXT[:9], "New York"]
    alone = [together.translate([text])[0] for text in texts]
    assert together.translate(texts) == alone
