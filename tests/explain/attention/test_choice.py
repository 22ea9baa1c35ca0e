"""The heads that align best are found, stored, and read from then on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.bundle.alignment import AlignmentHeads, save_alignment_heads
from heed.bundle.bundle import load_bundle, save_bundle
from heed.data.prepared import DATA, DEV_FILE, TRAIN_FILE, read_held_out, read_report
from heed.disk.folders import read_manifest
from heed.errors import ConfigError, DataError, FormatError
from heed.explain.attention.choice import Choice, choose, trained_on
from heed.explain.attention.links import Gold, error_rate, strongest
from heed.explain.attention.statistical import reference
from heed.explain.attention.words import between_words
from heed.text.piece_words import words_of
from heed.translate.result import Translation
from heed.translate.translator import Translator, load
from heed.translate.words import link_words, word_spans

Run = Callable[..., Any]

SRC = ["two men ride a bike in the snow .", "a dog runs .", "snow .", "don't run , men !"]
TGT = ["a dog runs in the snow .", "two men .", "a bike ride .", "the snow ."]
GOLD = [
    Gold(frozenset({(0, 0), (2, 1)}), frozenset({(0, 0), (2, 1), (3, 2)})),
    Gold(frozenset({(1, 1)}), frozenset({(1, 1)})),
    Gold(frozenset(), frozenset({(1, 2)})),
    Gold(frozenset({(4, 2)}), frozenset({(4, 2), (0, 0)})),
]


@pytest.fixture
def copy(translator: Translator, tmp_path: Path) -> Path:
    """A folder of the model that may be changed."""
    assert translator.twin is not None
    save_bundle(tmp_path / "model", load_bundle(translator.twin.folder))
    return tmp_path / "model"


def test_every_candidate_has_the_error_rate_of_its_trace(translator: Translator) -> None:
    """AER of each layer, head and step, recomputed from traces."""
    choice = choose(translator, SRC, TGT, gold=GOLD)
    assert choice.n_pairs == 4
    # Two layers, two heads and their mean, two steps.
    assert len({replace(heads, error_rate=None) for heads in choice.tried}) == 2 * 3 * 2
    for heads in choice.tried:
        found = []
        for src, tgt in zip(SRC, TGT, strict=True):
            trace = translator.trace(src, tgt)
            weights = trace[f"decoder.{heads.layer}.cross_attention.weights"]
            mean = weights[list(heads.heads)].mean(axis=0) if heads.heads else weights.mean(axis=0)
            rows = mean[1:] if heads.is_shifted else mean[:-1]
            between = between_words(
                rows[:, :-1],
                words_of(trace.target_tokens[1:], only_blanks=True),
                words_of(trace.source_tokens[:-1], only_blanks=True),
            )
            found.append(strongest(between))
        assert heads.error_rate == pytest.approx(error_rate(found, GOLD), abs=1e-4)
    assert replace(choice.best, documents_layer=-1) == choice.tried[0]
    assert choice.best.error_rate == min(heads.error_rate or 0.0 for heads in choice.tried)
    assert (choice.before.layer, choice.before.heads) == (1, ())


def test_without_gold_a_statistical_aligner_judges(translator: Translator) -> None:
    choice = choose(translator, SRC * 5, TGT * 5)
    assert choice.best.measure == "both directions of a statistical aligner"


def test_the_statistical_aligner_also_learns_from_more_pairs(translator: Translator) -> None:
    more = [("a dog .", "a dog ."), ("two men .", "two men ."), ("snow .", "snow .")] * 4
    words = [
        [text.split() for text in [*side, *(pair[place] for pair in more)]]
        for place, side in enumerate((SRC, TGT))
    ]
    expected = choose(translator, SRC, TGT, gold=reference(*words)[: len(SRC)])
    found = choose(translator, SRC, TGT, more=more)
    alone = choose(translator, SRC, TGT)

    def rates(choice: Choice) -> list[float | None]:
        return [heads.error_rate for heads in choice.tried]

    assert rates(found) == rates(expected) != rates(alone)
    assert found.n_pairs == 4


@pytest.mark.parametrize("most", [3, 5000])
def test_a_run_gives_pairs_that_it_was_trained_on(
    small_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("heed.explain.attention.choice.MAX_TRAINED_ON", most)
    settings = {"data": {"both_directions": True}, "tokenizer": {"vocab_size": 340}}
    small_run(tmp_path / "run", max_steps=1, settings=settings)
    run, translator = tmp_path / "run", load(tmp_path / "run", threads=1)
    held = {(pair.src, pair.tgt) for pair in read_held_out(run / DATA, DEV_FILE)}
    n_trained = 2 * read_report(run / DATA)["train"]
    found = {lang: trained_on(run, translator, lang) for lang in ("xx", "de")}
    assert sum(map(len, found.values())) == min(most, n_trained)
    assert trained_on(run, translator) == found["xx"]
    assert held.isdisjoint(found["xx"] + found["de"])
    for src, tgt in found["xx"] + found["de"]:
        assert tgt == " ".join(word[::-1] for word in src.split())
    if most > n_trained:
        assert {(tgt, src) for src, tgt in found["xx"]} == set(found["de"])
    (run / DATA / TRAIN_FILE).unlink()
    assert trained_on(run, translator, "de") == []


def test_stored_heads_are_read_by_all_that_align(copy: Path) -> None:
    stored = AlignmentHeads(
        layer=0,
        heads=(1,),
        is_shifted=True,
        error_rate=0.25,
        measure="hand",
        documents_layer=0,
    )
    save_alignment_heads(copy, stored)
    translator = load(copy, threads=1)
    assert translator.alignment_heads == stored == load_bundle(copy).alignment_heads
    trace = translator.trace(SRC[0], TGT[0])
    expected = trace["decoder.0.cross_attention.weights"][1, 1:, :-1]
    np.testing.assert_allclose(translator.align(SRC[0], TGT[0]).weights, expected, atol=1e-5)
    # The default is still there for who names it.
    last = trace["decoder.1.cross_attention.weights"].mean(axis=0)[:-1, :-1]
    np.testing.assert_allclose(translator.align(SRC[0], TGT[0], layer=-1).weights, last, atol=1e-5)
    one = trace["decoder.1.cross_attention.weights"][0, :-1, :-1]
    np.testing.assert_allclose(
        translator.align(SRC[0], TGT[0], layer=1, heads=[0]).weights, one, atol=1e-5
    )
    found = translator.translate([SRC[0]], alignment=True)[0]
    # Documents read all heads of their layer, at the step that writes.
    searched = translator.trace(SRC[0])["decoder.0.cross_attention.weights"].mean(axis=0)
    searched = searched[:-1, :-1]
    np.testing.assert_allclose(found.alignment or [], searched, atol=1e-5)


def test_the_file_is_one_that_older_readers_leave_alone(copy: Path) -> None:
    before = read_manifest(copy)
    save_alignment_heads(copy, AlignmentHeads(layer=0))
    after = read_manifest(copy)
    assert after.files.items() >= before.files.items()
    assert after.files.keys() - before.files.keys() == {"alignment.json"}
    # A model that replaces this one comes with its own heads, or with none.
    save_bundle(copy, replace(load_bundle(copy), alignment_heads=None))
    assert not (copy / "alignment.json").exists()


@pytest.mark.parametrize(
    "content", [b"{}", b'{"format": "heed alignment heads 1"}', AlignmentHeads().to_bytes()[:-9]]
)
def test_other_files_are_refused(content: bytes) -> None:
    with pytest.raises(FormatError):
        AlignmentHeads.from_bytes(content, "alignment.json")


def test_heads_of_values_that_cannot_be_are_refused() -> None:
    content = AlignmentHeads(heads=(-1,)).to_bytes()
    with pytest.raises(FormatError, match="is not in heed's format for alignment heads"):
        AlignmentHeads.from_bytes(content, "alignment.json")


def test_a_checkpoint_keeps_no_heads(copy: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    copy.rename(run / "checkpoints" / "best")
    with pytest.raises(ConfigError, match="is a checkpoint of a run that has not ended"):
        save_alignment_heads(run, AlignmentHeads())


def test_a_head_that_is_not_there_is_refused(translator: Translator) -> None:
    with pytest.raises(ConfigError, match="head must lie between 0 and 1, but is 5"):
        translator.align(SRC[0], TGT[0], heads=[5])


def test_data_that_do_not_fit_are_refused(translator: Translator) -> None:
    with pytest.raises(DataError, match=r"as many .* as sources \(4\), but there are 1\."):
        choose(translator, SRC, TGT[:1])
    with pytest.raises(DataError, match=r"as sources \(4\), but there are 4 and 1\."):
        choose(translator, SRC, TGT, gold=GOLD[:1])
    with pytest.raises(DataError, match="No pair has text on both sides"):
        choose(translator, [""], ["a"])
    outside = Gold(frozenset({(9, 0)}), frozenset({(9, 0)}))
    with pytest.raises(DataError, match="Pair 1 has 3 and 3 words, but a link 9-0"):
        choose(translator, ["a dog ."], ["a bike ."], gold=[outside])


def test_heads_are_chosen_by_text_as_it_is_translated(slots_model: Path) -> None:
    """With slots for its spans, as in traces; letter by letter the model has not learned them."""
    translator = load(slots_model)
    src = ["{name} and the file 12 .", "open https://a.b/c and 3 km ."]
    tgt = ["{name} und die Datei 12 .", "https://a.b/c und 3 km öffnen ."]
    gold = [
        Gold(sure, sure)
        for sure in (frozenset({(0, 0), (1, 1), (4, 4)}), frozenset({(1, 0), (3, 2), (4, 3)}))
    ]
    traces = [translator.trace(*pair) for pair in zip(src, tgt, strict=True)]
    assert {"{name}", "12"} <= {*traces[0].source_tokens}
    assert {"https://a.b/c", "3 km"} <= {*traces[1].source_tokens}
    choice = choose(translator, src[:1], tgt[:1], gold=gold[:1])
    for heads in choice.tried:
        weights = traces[0][f"decoder.{heads.layer}.cross_attention.weights"]
        mean = weights[list(heads.heads)].mean(axis=0) if heads.heads else weights.mean(axis=0)
        rows = mean[1:] if heads.is_shifted else mean[:-1]
        between = between_words(
            rows[:, :-1],
            words_of(traces[0].target_tokens[1:], only_blanks=True),
            words_of(traces[0].source_tokens[:-1], only_blanks=True),
        )
        assert heads.error_rate == pytest.approx(
            error_rate([strongest(between)], gold[:1]), abs=1e-4
        )
    # Links name each word of a span, so this pair is read letter by letter.
    assert choose(translator, src, tgt, gold=gold).n_pairs == 2
    assert choose(translator, src, tgt).n_pairs == 2


def test_documents_get_the_layer_that_is_best_after_competition(translator: Translator) -> None:
    """AER of each layer's mean, recomputed from traces."""
    words = [[[text[a:b] for a, b in word_spans(text)] for text in side] for side in (SRC, TGT)]
    gold = reference(*words)
    rates = []
    for layer in range(2):
        found = []
        for src, tgt in zip(SRC, TGT, strict=True):
            trace = translator.trace(src, tgt)
            weights = trace[f"decoder.{layer}.cross_attention.weights"].mean(axis=0)[:-1, :-1]
            aligned = Translation(
                text=tgt,
                tokens=trace.target_tokens[1:],
                source_tokens=trace.source_tokens[:-1],
                alignment=weights.tolist(),
            )
            found.append(strongest(link_words(src, aligned).weights.astype(np.float32)))
        rates.append(error_rate(found, gold))
    expected = 0 if rates[0] < rates[1] else -1
    assert choose(translator, SRC, TGT, gold=GOLD).best.documents_layer == expected
