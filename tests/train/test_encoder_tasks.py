"""Masked language models and classifiers: data, training, use, and what is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed
from heed.bundle.bundle import load_bundle
from heed.data.batch import plan_epoch
from heed.data.corpus import Corpus, TextConfig
from heed.data.labeled import prepare_labeled, read_labeled
from heed.data.prepared import Prepared
from heed.data.running_text import prepare_text
from heed.errors import ConfigError, DataError, UsageError
from heed.evaluate.labels import accuracy, interval, mean_f1
from heed.text.vocab import N_SPECIAL, TokenizerConfig
from heed.train.recipe.asked import Asked
from heed.train.recipe.cost import UNKNOWN
from heed.train.recipe.recipe import resolve
from heed.train.run.run import run_training
from heed.train.tasks.classification import MarkedWords
from heed.train.tasks.masked import MaskedText, collate_masked
from heed.translate.classifier import Classifier, load_classifier
from heed.translate.masked import load_masked
from heed.translate.trace import read_trace

Call = Callable[..., tuple[int, str, str]]

MODEL = {"d_model": 32, "n_heads": 4, "d_ff": 64, "n_layers": 2, "dropout": 0.0}
# Of ten lines, four say "red moon", three "old sea" and three "old hill".
PAIRS = ["red moon"] * 4 + ["old sea"] * 3 + ["old hill"] * 3
LINES = "".join(f"{pair}\n" for pair in PAIRS * 30)
GOOD, BAD = ("fine", "lovely", "great"), ("dull", "awful", "poor")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reviews") / "reviews.tsv"
    rows = [
        f"{label}\ta {word} {noun} indeed\n"
        for label, words in (("good", GOOD), ("bad", BAD))
        for word in words
        for noun in ("film", "song", "book", "play", "day")
    ]
    path.write_text("".join(rows * 8), encoding="utf-8")
    return path


def settings(task: str, max_steps: int, **training: Any) -> Asked:
    return Asked(
        {
            "task": task,
            "text": {"context": 32, "mask_share": 0.5},
            "tokenizer": {"kind": "word", "vocab_size": 330},
            "model": {**MODEL, "family": "encoder"},
            "training": {"max_steps": max_steps, "batch_tokens": 512, **training},
        }
    )


def quiet(asked: Asked, corpus: Corpus, out: Path) -> Path:
    assert run_training(asked, corpus, out, report=lambda event: None).is_finished
    return out


@pytest.fixture(scope="module")
def masked_run(lines: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mlm") / "run"
    return quiet(settings("mlm", 150), Corpus(text=(str(lines),)), out)


@pytest.fixture(scope="module")
def classifier_run(reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("classify") / "run"
    return quiet(settings("classify", 80), Corpus(labeled=(str(reviews),)), out)


@pytest.fixture(scope="module")
def classifier(classifier_run: Path) -> Classifier:
    return load_classifier(classifier_run)


# ---------------------------------------------------------------------------- masks


@pytest.fixture(scope="module")
def long_lines(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("long")
    words = [f"{'abcdefghij'[i % 10]}{'klmnop'[i % 6]}{'qrstuv'[i % 5]}" for i in range(40)]
    text = "\n".join(" ".join(words[i % 7 :]) for i in range(300)) + "\n"
    (folder / "long.txt").write_text(text, encoding="utf-8")
    return prepare_text(
        Corpus(text=(str(folder / "long.txt"),)),
        folder / "data",
        config=TextConfig(context=256),
        tokenizer=TokenizerConfig(kind="char", vocab_size=330),
        is_running=False,
    )


def test_of_15_percent_80_are_masked_10_replaced_and_10_stay(long_lines: Prepared) -> None:
    """Claim 123. Devlin et al. 2019, section 3.1; 300 lines, so shares are known to 1 %."""
    vocab = long_lines.src_vocab
    text = MaskedText(long_lines.train, vocab, TextConfig(), seed=1, epoch=2)
    chosen = masked = replaced = total = 0
    for index in range(len(text.src_lengths)):
        whole, src, tgt = long_lines.train.tgt(index), text.src(index), text.tgt(index)
        is_chosen = tgt != vocab.pad_id
        assert (tgt[is_chosen] == whole[is_chosen]).all()
        assert (src[~is_chosen] == whole[~is_chosen]).all()
        is_masked = src == vocab.mask_id
        assert is_chosen[is_masked].all()
        total += len(whole)
        chosen += int(is_chosen.sum())
        masked += int(is_masked.sum())
        replaced += int(((src != whole) & ~is_masked).sum())
    assert chosen / total == pytest.approx(0.15, abs=0.005)
    assert masked / chosen == pytest.approx(0.8, abs=0.02)
    assert replaced / chosen == pytest.approx(0.1, abs=0.02)


def test_masks_follow_from_seed_epoch_and_line(long_lines: Prepared) -> None:
    def drawn(**changes: int) -> list[int]:
        chosen = {"seed": 1, "epoch": 2, **changes}
        text = MaskedText(long_lines.train, long_lines.src_vocab, TextConfig(), **chosen)
        return [int(id_) for id_ in text.src(0)]

    assert drawn() == drawn()
    assert drawn() != drawn(epoch=3)
    assert drawn() != drawn(seed=2)


def test_whole_words_are_masked_with_all_their_pieces(long_lines: Prepared) -> None:
    vocab = long_lines.src_vocab
    config = TextConfig(whole_words=True, mask_share=0.3)
    text = MaskedText(long_lines.train, vocab, config, seed=1, epoch=1)
    for index in range(50):
        words = np.cumsum(vocab.begins_word[long_lines.train.tgt(index)])
        is_chosen = text.tgt(index) != vocab.pad_id
        for word in np.unique(words):
            assert len(set(is_chosen[words == word].tolist())) == 1
        assert is_chosen.any()


def test_the_end_of_a_line_is_read_but_not_predicted(long_lines: Prepared) -> None:
    vocab = long_lines.src_vocab
    text = MaskedText(long_lines.train, vocab, TextConfig(), seed=1, epoch=1)
    ids = {"pad_id": vocab.pad_id, "bos_id": vocab.bos_id, "eos_id": vocab.eos_id}
    batch = collate_masked(text, [0, 5, 6], **ids)
    assert batch.src.shape == batch.tgt_out.shape
    assert (batch.src == vocab.eos_id).sum() == 3
    assert not (batch.tgt_out == vocab.eos_id).any()
    assert batch.n_tgt_tokens == int((batch.tgt_out != vocab.pad_id).sum())


# ---------------------------------------------------------------------------- filling gaps


def test_a_gap_is_filled_by_what_stands_beside_it(masked_run: Path) -> None:
    """Claim 123: what stands before the gap decides, and the other way round."""
    model = load_masked(masked_run)
    ((best, *_),) = model.fill("red <mask>")
    assert best.word == "moon"
    assert best.probability > 0.9
    ((first, second, *_),) = model.fill("old <mask>")
    assert {first.word, second.word} == {"sea", "hill"}


def test_two_gaps_are_filled_independently_even_with_an_impossible_pair(masked_run: Path) -> None:
    """Claim 123: "old" is the commonest first word and "moon" the commonest second one."""
    first, second = load_masked(masked_run).fill("<mask> <mask>")
    assert (first[0].word, second[0].word) == ("old", "moon")
    assert "old moon" not in LINES
    assert first[0].probability == pytest.approx(0.6, abs=0.15)
    assert second[0].probability == pytest.approx(0.4, abs=0.15)


def test_fill_in_words(masked_run: Path, call: Call) -> None:
    code, out, _ = call("fill", "-m", str(masked_run), "red <mask>", "--count", "1")
    assert code == 0
    assert out.split()[1] == "moon"
    code, out, _ = call("fill", "-m", str(masked_run), "<mask> <mask>", "--json", "--count", "2")
    assert [gap[0]["word"] for gap in json.loads(out)] == ["old", "moon"]
    assert call("fill", "-m", str(masked_run), "-", "-k", "1", stdin=b"red <mask>\n")[1].split()[1]
    code, _, err = call("fill", "-m", str(masked_run), "no gap")
    assert code == 2
    assert "must have a <mask> to fill" in err
    code, _, err = call("fill", "-m", str(masked_run), "red " * 40 + "<mask>")
    assert code == 2
    assert "pieces, but this model reads 32 at once" in err


def test_fillings_are_the_pieces_that_can_stand_in_a_gap(masked_run: Path) -> None:
    model = load_masked(masked_run)
    (found,) = model.fill("red <mask>", count=10_000)
    pieces = [(one.word, one.continues_word) for one in found]
    assert len(set(pieces)) == len(pieces) == model.vocab.size - len(model.vocab.control_ids)
    assert not {"<s>", "</s>", "<mask>"} & {word for word, _ in pieces}
    for wrong in (0, -1, 2.5, None):
        with pytest.raises(UsageError, match="count must be a whole number from 1"):
            model.fill("red <mask>", count=wrong)
    with pytest.raises(UsageError, match="text must be a string, but is None"):
        model.fill(None)


# ---------------------------------------------------------------------------- labels


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good\n", "line 1 must be a label, a tab and a text, but is 'good'"),
        ("good\ta film\nbad\t\n", "line 2 must be a label, a tab and a text"),
        ("good\ta film\ngood\ta song\n", "must hold texts with at least two labels, but has 1"),
        ("", "must hold texts with at least two labels, but has 0"),
    ],
)
def test_labeled_text_that_cannot_be_used_is_an_error_in_words(
    tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "bad.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        prepare_labeled(
            Corpus(labeled=(str(tmp_path / "bad.tsv"),)),
            tmp_path / "data",
            config=TextConfig(dev_share=0.5),
            tokenizer=TokenizerConfig(kind="char", vocab_size=330),
            seed=1,
        )


def test_a_label_ends_at_a_tab_or_else_at_a_blank(tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("very good\ta film\n\n1 a song\n", encoding="utf-8")
    assert list(read_labeled(path)) == [("very good", "a film"), ("1", "a song")]


def test_lines_of_labeled_text_are_counted_as_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.data.progress.EVERY", 2)
    events: list[dict[str, Any]] = []
    path = tmp_path / "rows"
    path.write_text("good\ta film\n\n\nbad\ta song\n", encoding="utf-8")
    assert len(list(read_labeled(path, events.append))) == 2
    assert [(each["done"], each["unit"]) for each in events] == [
        (0, "lines"),
        (2, "lines"),
        (4, "lines"),
    ]


def test_a_label_that_only_the_development_set_has_is_refused(
    reviews: Path, tmp_path: Path
) -> None:
    (tmp_path / "dev.tsv").write_text("odd\ta film\n", encoding="utf-8")
    corpus = Corpus(labeled=(str(reviews),), dev_labeled=(str(tmp_path / "dev.tsv"),))
    with pytest.raises(DataError, match="no training text has the label 'odd'"):
        run_training(settings("classify", 2), corpus, tmp_path / "run", report=lambda event: None)


def test_every_label_is_learned_where_heed_draws_the_development_set(
    reviews: Path, tmp_path: Path
) -> None:
    rare = tmp_path / "rare.tsv"
    once = "".join(f"once{n}\ta word {n}\n" for n in range(20))
    rare.write_text(reviews.read_text(encoding="utf-8") + once, encoding="utf-8")
    corpus = Corpus(labeled=(str(rare),))
    found = prepare_labeled(
        corpus,
        tmp_path / "data",
        config=TextConfig(),
        tokenizer=TokenizerConfig(kind="char"),
        seed=1,
    )
    assert len(found.labels) == 22
    # Each review occurs eight times, and stays on one side: three of them are below a tenth.
    assert (found.report["train"], found.report["dev"]) == (236, 24)


def drawn_split(table: Path, out: Path, seed: int = 1) -> tuple[list[str], list[str]]:
    """The texts that heed learns from, and those that it draws for development."""
    found = prepare_labeled(
        Corpus(labeled=(str(table),)),
        out,
        config=TextConfig(),
        tokenizer=TokenizerConfig(kind="char"),
        seed=seed,
    )
    train, dev = (
        [found.src_vocab.decode(store.src(place).tolist()) for place in range(len(store))]
        for store in (found.train, found.dev_text)
    )
    return train, dev


def test_equal_texts_are_on_one_side_of_the_drawn_split(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    rows = [(f"L{n % 2}", f"text {n // 3}") for n in range(90)]  # each text three times
    rows += [("L0", "Text 0!"), *[("L1", "the same")] * 60]
    table.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    sides = [drawn_split(table, tmp_path / str(seed), seed) for seed in range(5)]
    for train, dev in sides:
        same = [{text.lower().strip("!") for text in texts} for texts in (train, dev)]
        assert not same[0] & same[1]
        assert 1 <= len(dev) <= 15  # a tenth of 151
        assert sorted([*train, *dev]) == sorted(text for _, text in rows)
    assert drawn_split(table, tmp_path / "again", 0) == sides[0]
    assert len({tuple(dev) for _, dev in sides}) > 1


def test_a_drawn_split_of_different_texts_stays_as_it_was(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("".join(f"L{n % 2}\ttext {n}\n" for n in range(40)), encoding="utf-8")
    # As drawn before equal texts stayed together: interrupted runs prepare the same again.
    assert drawn_split(table, tmp_path / "data")[1] == ["text 2", "text 3", "text 11", "text 25"]


@pytest.mark.parametrize("times", [1, 9])
def test_labels_of_one_text_each_leave_none_for_development(tmp_path: Path, times: int) -> None:
    table = tmp_path / "table.tsv"
    rows = "".join(f"L{n}\tsome text {n}\n" for n in range(5))
    table.write_text(rows * times, encoding="utf-8")
    with pytest.raises(DataError, match="one text for each label, .* --dev-labeled FILE"):
        run_training(
            settings("classify", 2),
            Corpus(labeled=(str(table),)),
            tmp_path / "run",
            report=lambda event: None,
        )


def test_an_empty_development_set_is_not_replaced(reviews: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.tsv"
    empty.write_text("\n")
    corpus = Corpus(labeled=(str(reviews),), dev_labeled=(str(empty),))
    with pytest.raises(DataError, match="There are no labeled texts in .*empty.tsv"):
        run_training(settings("classify", 2), corpus, tmp_path / "run", report=lambda event: None)


def test_it_labels_texts(classifier: Classifier) -> None:
    """Claim 127."""
    found = classifier(["a lovely day indeed", "a dull book indeed", ""])
    assert [one.label for one in found[:2]] == ["good", "bad"]
    for one in found:
        assert sum(one.probabilities.values()) == pytest.approx(1.0)
        assert one.probabilities[one.label] == max(one.probabilities.values())
    assert classifier(text for text in ["a dull book indeed"]) == classifier(["a dull book indeed"])
    for wrong in ("one text", None, [1]):
        with pytest.raises(UsageError, match="texts must be a list of strings"):
            classifier(wrong)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_a_label_does_not_depend_on_the_texts_beside_it(
    classifier: Classifier, texts: list[str]
) -> None:
    for text, found in zip(texts, classifier(texts), strict=True):
        (alone,) = classifier([text])
        for label, probability in alone.probabilities.items():
            assert found.probabilities[label] == pytest.approx(probability, abs=1e-5)


def test_classify_in_words(classifier_run: Path, call: Call, reviews: Path) -> None:
    run = str(classifier_run)
    stdin = b"a great play indeed\na poor song indeed\n"
    assert call("classify", "-m", run, stdin=stdin) == (0, "good\nbad\n", "")
    code, out, _ = call("classify", "-m", run, "a great play indeed", "--json")
    assert json.loads(out)["probabilities"]["good"] > 0.9
    code, out, _ = call("evaluate", "-m", run, "--labeled", str(reviews))
    assert code == 0
    assert "accuracy    100.00  [100.00, 100.00]" in out
    flag = "--labelled"  # the other spelling; codespell:ignore labelled
    code, out, _ = call("evaluate", "-m", run, flag, str(reviews), "--json")
    assert json.loads(out)["mean F1"]["score"] == 100.0
    card = (classifier_run / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text-classification" in card
    assert load_bundle(classifier_run).labels == ("bad", "good")
    code, out, _ = call("models", "show", run)
    assert "task       classify\nlabels     bad, good\n" in out
    code, _, err = call("generate", "-m", run, "x")
    assert "is a classifier. Use heed classify" in err


def test_a_text_whose_end_is_not_read_is_told(
    classifier: Classifier, classifier_run: Path, call: Call
) -> None:
    long = "a great play " * classifier.context
    assert [one.is_cut for one in classifier([long, "a great play"])] == [True, False]
    code, out, err = call("classify", "-m", str(classifier_run), stdin=f"a\n{long}\n".encode())
    assert (code, out.count("\n")) == (0, 2)
    assert "1 text is longer than the" in err
    assert "the first is text 2" in err
    code, _, err = call("classify", "-m", str(classifier_run), "-", stdin=b"a\n")
    assert code == 2
    assert "leave out the -" in err


def test_labels_that_the_model_does_not_know_are_told(
    classifier_run: Path, call: Call, tmp_path: Path
) -> None:
    path, command = tmp_path / "labeled", ["evaluate", "-m", str(classifier_run), "--labeled"]
    path.write_text("good\ta film\nbda\ta dull book indeed\n", encoding="utf-8")
    code, _, err = call(*command, str(path))
    assert code == 0
    assert "1 of 2 texts have a label that is not the model's (bad, good)" in err
    assert "the first is 'bda'" in err
    path.write_text("1\ta film\n0\ta dull book indeed\n", encoding="utf-8")
    code, out, err = call(*command, str(path))
    assert (code, out) == (1, "")
    assert "has no label of this model (bad, good); its first label is '1'" in err


def test_accuracy_and_f1_by_hand() -> None:
    found, right = ["a", "a", "b", "b", "c"], ["a", "b", "b", "b", "b"]
    assert accuracy(found, right) == 60.0
    # a: 2·1/3, b: 2·2/6, c: 0
    assert mean_f1(found, right) == pytest.approx(100 * (2 / 3 + 2 / 3 + 0) / 3)
    assert mean_f1(right, right) == accuracy(right, right) == 100.0


def test_an_interval_holds_its_score_though_texts_drawn_anew_have_fewer_labels() -> None:
    right = [number // 2 for number in range(120)]
    found = [label if number % 3 else label + 1 for number, label in enumerate(right)]
    score = mean_f1(found, right)
    low, high = interval(mean_f1, found, right, resamples=200)
    assert low < score - 2 < score + 2 < high


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_an_interval_holds_scores_of_its_own_kind(pairs: list[tuple[int, int]]) -> None:
    found, right = zip(*pairs, strict=True)
    low, high = interval(accuracy, found, right, resamples=40)
    assert 0 <= low <= high <= 100
    assert interval(accuracy, right, right, resamples=40) == (100.0, 100.0)


# ---------------------------------------------------------------------------- a bag of n-grams


@pytest.fixture(scope="module")
def bag_run(reviews: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    asked = Asked({"task": "classify", "training": {"max_steps": 60}})
    return quiet(asked, Corpus(labeled=(str(reviews),)), tmp_path_factory.mktemp("bag") / "run")


def test_a_classifier_is_a_bag_of_n_grams_unless_told_otherwise(bag_run: Path, call: Call) -> None:
    """Claim 127."""
    config = load_bundle(bag_run).config.to_dict()
    assert config["family"] == "bag"
    assert config["d_model"] * config["n_gram_rows"] == 1 << 22
    stdin = b"a great play indeed\na poor song indeed\n"
    assert call("classify", "-m", str(bag_run), stdin=stdin) == (0, "good\nbad\n", "")


def test_batches_of_a_bag_hold_any_texts_and_equally_many(tmp_path: Path) -> None:
    """Among texts of its own length a long one would share its batch with fewer, and weigh more."""
    path = tmp_path / "lengths.tsv"
    path.write_text(
        "".join(f"{'good' if n % 2 else 'bad'}\t{'fine ' * (1 + n % 40)}{n}\n" for n in range(200)),
        "utf-8",
    )
    config, tokenizer = TextConfig(dev_share=0.1), TokenizerConfig(vocab_size=330)
    data = prepare_labeled(
        Corpus(labeled=(str(path),)), tmp_path / "data", config=config, tokenizer=tokenizer, seed=1
    )
    marked = MarkedWords(data.train, data.src_vocab)
    (length,) = set(marked.src_lengths.tolist())
    real = [len(marked.src(index)) + 1 for index in range(len(data.train))]
    assert length == round(np.mean(real))
    batches = plan_epoch(
        marked.src_lengths, np.ones_like(real), max_tokens=length * 10, seed=3, epoch=1
    )
    assert sorted(map(len, batches))[1:] == [10] * (len(batches) - 1)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(real)))
    # The longest text of a batch is some times as long as the shortest, in nearly all batches.
    spread = [max(real[i] for i in batch) / min(real[i] for i in batch) for batch in batches]
    assert np.median(spread) > 4


def test_labels_of_a_bag_do_not_depend_on_the_texts_beside_them(bag_run: Path) -> None:
    classifier = load_classifier(bag_run)
    texts = ["a lovely day indeed", "", "dull", "an awful awful awful book"]
    for text, found in zip(texts, classifier(texts), strict=True):
        (alone,) = classifier([text])
        assert found.probabilities == pytest.approx(alone.probabilities, abs=1e-6)


@pytest.mark.parametrize(("asked", "family"), [
    ({}, "bag"),
    ({"preset": "small"}, "encoder"),
    ({"training": {"parent": "some folder"}}, "encoder"),
    ({"model": {"family": "encoder"}}, "encoder"),
])  # fmt: skip
def test_the_family_of_a_classifier(asked: dict[str, Any], family: str) -> None:
    assert resolve(Asked({"task": "classify", **asked})).model.family == family


def test_a_bag_stops_after_a_few_epochs_unless_steps_are_given() -> None:
    facts = replace(UNKNOWN, n_src_tokens=174_000, tgt_vocab_size=N_SPECIAL + 2, is_guess=False)
    training = resolve(Asked({"task": "classify", "training": {"time_s": 900.0}}), facts).training
    assert training.max_steps == 600  # six times a hundred batches
    asked = Asked({"task": "classify", "training": {"max_steps": 7}})
    assert resolve(asked, facts).training.max_steps == 7
    asked = Asked({"task": "classify", "training": {"batch_tokens": 1024}})
    training = resolve(asked, facts).training
    # Six times the marked tokens, in batches of the size that was asked for.
    assert training.max_steps == round(6 * 1.6 * 174_000 / 1024)
    assert (training.first_batch_tokens, training.batch_tokens) == (1024, 1024)


@pytest.mark.parametrize(("n_labels", "width"), [(2, 4), (5, 8), (60, 64), (5000, 64)])
def test_a_bag_is_as_wide_as_its_labels_need(n_labels: int, width: int) -> None:
    facts = replace(UNKNOWN, tgt_vocab_size=N_SPECIAL + n_labels, is_guess=False)
    assert resolve(Asked({"task": "classify"}), facts).model.d_model == width


@pytest.mark.parametrize(
    ("model", "family"),
    [({}, "bag"), ({"n_gram": 2}, "bag"), ({"dropout": 0.1}, "bag"), ({"n_layers": 2}, "encoder")],
)
def test_a_setting_that_only_an_encoder_has_chooses_an_encoder(
    model: dict[str, Any], family: str
) -> None:
    assert resolve(Asked({"task": "classify", "model": model})).model.family == family


def test_a_bag_has_no_table_that_could_begin_with_vectors() -> None:
    asked = Asked({"task": "classify", "training": {"first_embeddings": "word2vec"}})
    with pytest.raises(ConfigError, match="word2vec is for a table of pieces, which a bag of n-gr"):
        resolve(asked)


def test_nothing_starts_from_a_bag(reviews: Path, tmp_path: Path) -> None:
    corpus, asked = Corpus(labeled=(str(reviews),)), Asked({"task": "classify"})
    quiet(asked.plus("training.max_steps", 1), corpus, tmp_path / "bag")
    asked = asked.plus("training.parent", str(tmp_path / "bag"))
    with pytest.raises(ConfigError, match="is a bag of n-grams, which shares no weights"):
        quiet(asked, corpus, tmp_path / "run")


def test_a_bag_does_not_translate(small_corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="model.family = bag does not translate: it is for the t"):
        quiet(Asked({"model": {"family": "bag"}}), small_corpus, tmp_path / "run")


def test_rare_n_grams_weigh_more_in_a_trained_bag(bag_run: Path) -> None:
    """Each review is "a … … indeed": n-grams of all texts weigh 0, and those of none too."""
    weights = load_bundle(bag_run).weights["row_weights"]
    assert weights.min() == 0
    assert 20 < np.count_nonzero(weights) < 1000
    # One word of six, in 40 of the 240 texts; some of them are held out.
    assert np.isclose(weights, (np.log(6) / np.log(240)) ** 1.5, atol=0.05).any()


def test_a_bag_continued_equals_undisturbed(reviews: Path, tmp_path: Path) -> None:
    corpus = Corpus(labeled=(str(reviews),))
    asked = Asked({"task": "classify", "training": {"max_steps": 8}})
    quiet(asked, corpus, tmp_path / "whole")
    steps: list[int] = []

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            steps.append(event["step"])

    parts = tmp_path / "parts"
    run_training(asked, corpus, parts, report=report, should_stop=lambda: steps[-1:] == [3])
    assert run_training(asked, corpus, parts, report=report).is_finished
    name = "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (parts / name).read_bytes()


# ---------------------------------------------------------------------------- one from another


def test_a_classifier_starts_from_a_masked_language_model(reviews: Path, tmp_path: Path) -> None:
    """Claims 110, 111: layers and embeddings are taken over, the labels' output begins fresh."""
    parent = quiet(settings("mlm", 5), Corpus(text=(str(reviews),)), tmp_path / "mlm")
    asked = Asked({"task": "classify", "training": {"max_steps": 40, "parent": str(parent)}})
    run = quiet(asked, Corpus(labeled=(str(reviews),)), tmp_path / "run")
    before, after = load_bundle(parent), load_bundle(run)
    assert after.config.to_dict()["pooling"] == "mean"
    assert after.src_vocab.hash == before.src_vocab.hash
    name = "encoder.0.feed_forward.expand.weight"
    change = np.abs(after.weights[name] - before.weights[name]).max()
    assert 0 < change < np.abs(before.weights[name]).max()
    assert after.weights["output.weight"].shape == (N_SPECIAL + 2, 32)


def test_a_translator_starts_from_a_masked_language_model(
    masked_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    """Claims 110, 111: its encoder is the masked language model's."""
    asked = Asked({"training": {"max_steps": 1, "parent": str(masked_run)}})
    run = quiet(asked, small_corpus, tmp_path / "run")
    before, after = load_bundle(masked_run), load_bundle(run)
    name = "encoder.1.self_attention.project_in.weight"
    assert np.abs(after.weights[name] - before.weights[name]).max() < 0.1
    n_old = before.config.src_vocab_size
    table = after.weights["embed_src.tokens.weight"][:n_old]
    assert np.abs(table - before.weights["embed.tokens.weight"]).max() < 0.1
    assert isinstance(heed.load(run)("baum"), str)


def test_an_encoder_alone_does_not_translate(small_corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="model.family = encoder does not translate"):
        quiet(Asked({"model": {"family": "encoder"}}), small_corpus, tmp_path / "run")


def test_what_cannot_start_from_another_task_is_refused(
    classifier_run: Path, small_corpus: Corpus, tmp_path: Path
) -> None:
    asked = Asked({"training": {"max_steps": 1, "parent": str(classifier_run)}})
    with pytest.raises(ConfigError, match="was trained for the task classify, from which transl"):
        quiet(asked, small_corpus, tmp_path / "run")


@pytest.mark.parametrize("task", ["mlm", "classify"])
def test_paused_and_continued_equals_undisturbed(
    task: str, lines: Path, reviews: Path, tmp_path: Path
) -> None:
    corpus = Corpus(text=(str(lines),)) if task == "mlm" else Corpus(labeled=(str(reviews),))
    asked = settings(task, 8, seed=3)
    quiet(asked, corpus, tmp_path / "whole")
    steps: list[int] = []

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            steps.append(event["step"])

    parts = tmp_path / "parts"
    run_training(asked, corpus, parts, report=report, should_stop=lambda: steps[-1:] == [3])
    assert run_training(asked, corpus, parts, report=report).is_finished
    name = "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (parts / name).read_bytes()


def test_a_trace_of_gaps_has_the_probabilities_of_their_fillings(masked_run: Path) -> None:
    model = load_masked(masked_run)
    text = "the <mask> sat"
    trace = model.trace(text)
    ((best, *_),) = model.fill(text)
    gap = trace.source_tokens.index("<mask>")
    assert np.exp(trace["log_probs"][gap]).max() == pytest.approx(best.probability, abs=1e-4)
    assert trace.node("log_probs").axes == ("src", "piece")
    assert not trace.target_tokens
    with pytest.raises(UsageError, match="but this model reads"):
        model.trace("cat " * 2000)


def test_a_trace_of_a_classifier_ends_with_its_labels(
    classifier: Classifier, bag_run: Path, tmp_path: Path
) -> None:
    for model in (classifier, load_classifier(bag_run)):
        trace = model.trace("a good film")
        (found,) = model(["a good film"])
        assert trace.labels.keys() == found.probabilities.keys()
        for label, probability in found.probabilities.items():
            assert trace.labels[label] == pytest.approx(probability, abs=1e-4)
        assert trace.node("states").axes == ("text", "d_model")
        trace.save(tmp_path / "trace.safetensors")
        assert read_trace(tmp_path / "trace.safetensors").labels == trace.labels
    with pytest.raises(UsageError, match="text must be a string, but is None"):
        classifier.trace(None)


def test_inspect_shows_models_that_write_nothing(
    classifier_run: Path, masked_run: Path, call: Call
) -> None:
    code, out, _ = call("inspect", "-m", str(classifier_run), "a good film", "--probabilities")
    assert code == 0
    assert {line.split()[1] for line in out.splitlines()} == {"bad", "good"}
    code, out, _ = call("inspect", "-m", str(masked_run), "the <mask> sat", "--steps")
    assert code == 0
    assert out.splitlines()[-1].split()[0] == "log_probs"
    for flags, words in (
        (("--probabilities",), "use heed fill for its probabilities"),
        (("a word", "--steps"), "does not generate text: leave out TRANSLATION"),
    ):
        code, _, error = call("inspect", "-m", str(masked_run), "the <mask> sat", *flags)
        assert code == 2
        assert words in error
