"""A language model: text in, windows, training, generation, scores; and what is refused."""

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed
from heed.data.corpus import Corpus, TextConfig
from heed.data.running_text import prepare_text
from heed.errors import ConfigError, DataError, RunError, UsageError
from heed.text.stream import stream_ids, stream_text
from heed.text.vocab import TokenizerConfig
from heed.train.recipe.asked import Asked
from heed.train.run.run import run_training
from heed.train.tasks.language_model import Windows, collate_windows
from heed.translate.language_model import LanguageModel, load_language_model

Call = Callable[..., tuple[int, str, str]]

VERSE = "the cat sat on the mat\nand the dog lay on the log\n\nwho is that? asked the cat\n"
MODEL = {"d_model": 48, "n_heads": 4, "d_ff": 96, "n_layers": 2, "dropout": 0.0}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "verses.txt"
    path.write_text(VERSE * 60, encoding="utf-8")
    return path


def settings(max_steps: int, **training: Any) -> Asked:
    return Asked(
        {
            "task": "lm",
            "text": {"context": 64},
            "tokenizer": {"kind": "char", "vocab_size": 330},
            "model": MODEL,
            "training": {"max_steps": max_steps, "batch_tokens": 512, **training},
        }
    )


@pytest.fixture(scope="module")
def trained(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lm") / "run"
    events: list[dict[str, Any]] = []
    outcome = run_training(settings(150), Corpus(text=(str(text),)), out, report=events.append)
    assert outcome.is_finished
    assert not [event for event in events if event["kind"] == "alarm"]
    found = [event["forecast"] for event in events if event.get("forecast")]
    ends = [event["loss"] for event in events if event["kind"] == "validation"]
    assert all(one["loss"]["low"] <= one["loss"]["high"] for one in found)
    assert found[-1]["loss"]["low"] <= ends[-1] + 0.05
    return out


@pytest.fixture(scope="module")
def model(trained: Path) -> LanguageModel:
    return load_language_model(trained)


# ---------------------------------------------------------------------------- text and ids


@given(st.lists(st.text(max_size=20), max_size=5))
def test_running_text_comes_back_and_joins(model: LanguageModel, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    (whole,) = stream_ids(model.vocab, [text])
    parts = stream_ids(model.vocab, [f"{line}\n" for line in lines])
    assert whole == [id_ for part in parts for id_ in part]
    assert stream_text(model.vocab, whole) == text.encode("utf-8", "replace").decode() or any(
        "\ud800" <= character <= "\udfff" for character in text
    )


@given(st.integers(1, 50), st.integers(1, 20), st.integers(0, 19))
def test_windows_are_the_text_cut_into_pieces(n_ids: int, length: int, offset: int) -> None:
    ids = np.arange(n_ids, dtype=np.int32)
    windows = Windows(ids, length, offset if offset < min(length, n_ids) else 0)
    rows = [windows.tgt(i) for i in range(len(windows.tgt_lengths))]
    assert np.concatenate(rows).tolist() == ids.tolist()
    assert [len(row) for row in rows] == windows.tgt_lengths.tolist()
    assert max(windows.tgt_lengths) <= length
    assert len(windows.src(0)) == 0


def test_a_batch_predicts_each_token_of_a_window_from_those_before_it() -> None:
    windows = Windows(np.arange(10, 17, dtype=np.int32), 4)
    batch = collate_windows(windows, [0, 1], pad_id=0, bos_id=2, eos_id=3)
    assert batch.tgt_in.tolist() == [[2, 10, 11, 12], [2, 14, 15, 16]]
    assert batch.tgt_out.tolist() == [[10, 11, 12, 13], [14, 15, 16, 0]]
    assert batch.src.shape == (2, 0)
    assert (batch.n_src_tokens, batch.n_tgt_tokens) == (0, 7)


# ---------------------------------------------------------------------------- the corpus


def prepared(text: Path, out: Path, **settings: Any) -> Any:
    return prepare_text(
        Corpus(text=(str(text),)),
        out,
        config=TextConfig(**settings),
        tokenizer=TokenizerConfig(kind="char", vocab_size=330),
    )


def test_the_end_of_the_text_is_held_out(text: Path, tmp_path: Path) -> None:
    data = prepared(text, tmp_path / "data", dev_share=0.25)
    whole = text.read_text(encoding="utf-8")
    assert data.dev_text is not None
    train, dev = (stream_text(data.tgt_vocab, store.ids) for store in (data.train, data.dev_text))
    assert train + dev == whole
    assert len(train) / len(whole) == pytest.approx(0.75, abs=0.01)
    assert data.report["characters"] == {"train": len(train), "dev": len(dev)}
    again = prepared(text, tmp_path / "data", dev_share=0.25)
    assert again.report == data.report


def test_the_characters_that_are_encoded_are_reported(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were reported by 2,000 blocks, or 130 MB."""
    monkeypatch.setattr("heed.data.running_text.BLOCK_CHARACTERS", 100)
    events: list[dict[str, Any]] = []
    prepare_text(
        Corpus(text=(str(text),)),
        tmp_path / "data",
        config=TextConfig(),
        tokenizer=TokenizerConfig(kind="char", vocab_size=330),
        report=events.append,
    )
    done = [each["done"] for each in events if each.get("phase") == "encoding the train text"]
    assert done[:2] == [0, 101]
    assert len(done) > 30


def test_another_text_in_the_same_folder_is_refused(text: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text(VERSE * 59, encoding="utf-8")
    prepared(text, tmp_path / "data")
    with pytest.raises(RunError, match="text file 1 was .*verses.txt, .* but is .*other.txt"):
        prepared(other, tmp_path / "data")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must hold at least one sentence to learn a vocabulary from, but is empty"),
        (b"one line only\n", "nothing is left for dev"),
        (b"a\n\xff\xfe\xfa\n", "UTF-8"),
    ],
)
def test_text_that_cannot_be_used_is_an_error_in_words(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        prepared(tmp_path / "bad.txt", tmp_path / "data")


# ---------------------------------------------------------------------------- what it learned


def test_it_goes_on_with_a_text(model: LanguageModel) -> None:
    """Claim 124: the most probable continuation of a text that was learned by heart."""
    assert model.generate(["and the dog"], length=25) == [" lay on the log\n\nwho is t"]


def test_prompts_of_any_length_do_not_depend_on_each_other(model: LanguageModel) -> None:
    prompts = ["who", "", VERSE, "and the dog lay", "é€😀\t"]
    together = model.generate(prompts, length=20)
    assert together == [model.generate([prompt], length=20)[0] for prompt in prompts]
    assert all(len(stream_ids(model.vocab, [more])[0]) >= 10 for more in together)


def test_a_text_longer_than_the_context_goes_on(model: LanguageModel) -> None:
    (more,) = model.generate(["the cat sat"], length=3 * model.context)
    assert len(more) == 3 * model.context
    assert (VERSE * 5)[: 4 * model.context].startswith("the cat sat" + more[:100])


def test_a_prompt_is_read_whole_until_the_context_is_full(model: LanguageModel) -> None:
    prompt = "log mat hat qx who? " * 2 + "zzz cat lay"  # 51 of 64 tokens
    for length in (1, 13):
        (more,) = model.generate([prompt], length=length)
        trace = model.trace(prompt, more)
        likeliest = trace["logits"].argmax(axis=1)[trace.n_prompt :].tolist()
        assert model.vocab.pieces(likeliest) == trace.expected_tokens[trace.n_prompt :]
    assert model.reads_whole("a" * 63)
    assert not model.reads_whole("a" * 64)


def test_rows_are_filled_up_alone(model: LanguageModel) -> None:
    prompts, options = ["the", VERSE[:60], VERSE * 2], {"sample": True, "length": 150}
    together = model.generate(prompts, **options)
    assert together[0] == model.generate(prompts[:1], **options)[0]
    assert together[:2] == model.generate(prompts[:2], **options)
    assert together[2] == model.generate(["", "who", prompts[2]], **options)[2]


@pytest.mark.parametrize("sample", [True, False])
def test_many_prompts_of_unequal_length_are_continued(model: LanguageModel, sample: bool) -> None:
    prompts = [VERSE[:60], *("a" * n for n in range(1, 10))]  # the first one fills its context
    together = model.generate(prompts, length=60, sample=sample)
    assert together[0] == model.generate(prompts[:1], length=60, sample=sample)[0]
    assert together[1] == model.generate(["", "a"], length=60, sample=sample)[1]


@pytest.mark.parametrize("length", [10, 200])
def test_a_text_ends_where_no_token_is_allowed(model: LanguageModel, length: int) -> None:
    kept = stream_ids(model.vocab, ["abcd"])[0]
    suppressed = [id_ for id_ in range(model.vocab.size) if id_ not in kept]
    options: dict[str, Any] = {"suppress": suppressed, "no_repeat_ngram_size": 1}
    found = model.generate(["", "ab", "the dog "], length=length, **options)
    # The last prompt has the d.
    assert [sorted(more) for more in found] == [list("abcd"), list("cd"), list("abc")]


def test_texts_may_come_from_a_generator(model: LanguageModel) -> None:
    assert model.generate((text for text in ["who", "the"]), length=3) == model.generate(
        ["who", "the"], length=3
    )


@pytest.mark.parametrize("option", [{"n_best": 2}, {"beam_size": 4}, {"max_length": 3}])
def test_options_of_texts_that_end_are_refused(model: LanguageModel, option: Any) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(option))} has no effect on running text"):
        model.generate(["who"], length=3, **option)


def test_samples_follow_from_the_seed(model: LanguageModel) -> None:
    options: dict[str, Any] = {"sample": True, "temperature": 1.5, "length": 40}
    first, second = (model.generate(["the"] * 2, seed=seed, **options) for seed in (1, 2))
    assert model.generate(["the"] * 2, seed=1, **options) == first
    assert first != second
    assert first[0] != first[1]


def test_the_score_of_a_text_is_the_sum_of_its_next_tokens(model: LanguageModel) -> None:
    text = "and the cat lay on the log"
    (ids,) = stream_ids(model.vocab, [text])
    src = np.zeros((1, 0), dtype=np.int64)
    total = 0.0
    for place, id_ in enumerate(ids):
        tgt_in = np.array([[model.vocab.bos_id, *ids[:place]]])
        total += float(model.model.teacher_forced(src, tgt_in).all_log_probs()[-1, id_])
    found = model.score(text)
    assert -found.nll == pytest.approx(total, abs=1e-3)
    assert found.perplexity == pytest.approx(math.exp(-total / len(ids)), rel=1e-4)
    assert found.bits == pytest.approx(-total / len(text) / math.log(2), rel=1e-4)
    assert model.score(VERSE).loss < 0.2 < model.score("zzz qqq").loss


def test_paused_and_continued_equals_undisturbed(text: Path, tmp_path: Path) -> None:
    corpus, asked = Corpus(text=(str(text),)), settings(8, seed=3)
    run_training(asked, corpus, tmp_path / "whole", report=lambda event: None)
    steps: list[int] = []

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            steps.append(event["step"])

    parts = tmp_path / "parts"
    run_training(asked, corpus, parts, report=report, should_stop=lambda: steps[-1:] == [3])
    assert run_training(asked, corpus, parts, report=report).is_finished
    name = "model.safetensors"
    assert (tmp_path / "whole" / name).read_bytes() == (parts / name).read_bytes()


def test_a_translator_starts_from_it(trained: Path, tmp_path: Path, small_corpus: Corpus) -> None:
    """Claims 110, 111: pre-training on text of one side, then pairs."""
    asked = Asked({"training": {"max_steps": 2, "parent": str(trained)}})
    run_training(asked, small_corpus, tmp_path / "run", report=lambda event: None)
    assert isinstance(heed.load(tmp_path / "run")("baum"), str)


# ---------------------------------------------------------------------------- the commands


def test_the_commands(trained: Path, call: Call, text: Path) -> None:
    run = str(trained)
    assert call("generate", "-m", run, "and the dog", "--length", "8") == (
        0,
        "and the dog lay on \n",
        "",
    )
    code, out, _ = call("generate", "-m", run, "-", "--json", "--length", "4", stdin=b"and the dog")
    assert json.loads(out) == {"prompt": "and the dog", "continuation": " lay"}
    code, out, _ = call("evaluate", "-m", run, "--text", str(text))
    assert code == 0
    assert "in windows of 64" in out
    code, out, _ = call("evaluate", "-m", run, "--text", str(text), "--json")
    assert json.loads(out)["bits_per_character"] < 0.5
    code, _, err = call("evaluate", "-m", run, "--text", "/dev/null")
    assert (code, err) == (1, "heed: /dev/null must hold text to score, but is empty.\n")
    code, _, err = call("evaluate", "-m", run, "--text", str(text), "--dtype", "float16")
    assert code == 1
    assert "float16 needs a GPU" in err


def test_int8_generates_without_torch(
    trained: Path, call: Call, text: Path, tmp_path: Path
) -> None:
    small = str(tmp_path / "small")
    code, out, _ = call("quantize", str(trained), "--out", small, "--text", str(text))
    assert code == 0
    losses = [float(line.split()[2]) for line in out.splitlines() if " loss " in line]
    assert len(losses) == 2
    assert losses[0] == pytest.approx(losses[1], abs=0.02)
    generate = ["generate", "-m", small, "and the dog", "--length", "8"]
    program = (
        "import sys, heed.cli.main as m; code = m.run(sys.argv[1:]);"
        "assert 'torch' not in sys.modules; sys.exit(code)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program, *generate], capture_output=True, text=True, check=True
    )
    assert found.stdout == "and the dog lay on \n"
    assert call("models", "show", small)[1].splitlines()[1] == "task       lm"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["generate", "x"], "Give the model: -m RUN"),
        (["generate", "-m", "RUN", "x", "--temperature", "0.5"], "--temperature changes how"),
        (["generate", "-m", "RUN", "x", "--sample", "--temperature", "0"], "--temperature must be"),
        (["generate", "-m", "RUN", "x", "--sample", "--min-p", "nan"], "--min-p must be a number"),
        (["generate", "-m", "RUN", "-", "-"], "read once, but is given twice"),
        (["translate", "-m", "RUN", "x"], "is a language model. Use heed generate"),
        (["train", "--task", "lm", "--out", "o"], "Give text to learn from: --text FILE"),
        (
            ["train", "--task", "lm", "--src", "a", "--out", "o"],
            "--src cannot be used with --task lm",
        ),
        (["train", "--text", "TEXT", "--out", "o"], "give --task lm or mlm too"),
        (
            [
                *("train", "--task", "lm", "--text", "TEXT", "--out", "o"),
                *("model.positions=learned", "model.max_positions=24"),
            ],
            "model.max_positions must be at least text.context, which is 256, but is 24. Raise it",
        ),
        (["train", "--task", "lm", "--text", "-", "--out", "o"], "--text must be a file"),
        (["quantize", "RUN", "--shortlist"], "--shortlist is for a model that was trained with"),
        (["quantize", "RUN", "--src", "a", "--ref", "b"], "--src is for a model that was trained"),
        (["evaluate", "--text", "TEXT"], "Give the model: -m RUN"),
        (
            ["evaluate", "-m", "RUN", "--text", "TEXT", "-t", "de"],
            "--target-lang is for translations only and cannot be used with --text or --labeled.",
        ),
        (
            ["evaluate", "-m", "RUN", "--text", "TEXT", "--ref", "a"],
            "cannot be combined with --src, --ref or --hyp",
        ),
        (
            ["train", "--task", "lm", "--text", "TEXT", "--out", "o", "model.family=rnn"],
            "task lm trains a model of the family decoder, not rnn",
        ),
    ],
)
def test_what_is_wrong_is_said(
    trained: Path, text: Path, call: Call, args: list[str], message: str
) -> None:
    words = [{"RUN": str(trained), "TEXT": str(text)}.get(word, word) for word in args]
    code, out, err = call(*words)
    assert code in (1, 2)
    assert message in err
    assert out == ""


def test_a_translator_is_no_language_model(tmp_path: Path, small_run: Any) -> None:
    small_run(tmp_path / "run", max_steps=1)
    with pytest.raises(ConfigError, match="is a translator. Use heed translate"):
        load_language_model(tmp_path / "run")


@pytest.mark.parametrize("prompts", ["text", [1], None])
def test_prompts_are_a_list_of_texts(model: LanguageModel, prompts: Any) -> None:
    with pytest.raises(UsageError, match="prompts must be a list of strings"):
        model.generate(prompts)


@pytest.mark.parametrize("wrong", [None, ["a"], 3])
def test_a_text_is_a_string(model: LanguageModel, wrong: Any) -> None:
    with pytest.raises(UsageError, match="text must be a string"):
        model.score(wrong)
    with pytest.raises(UsageError, match="prompt must be a string"):
        model.trace(wrong, "a")


def test_generate_says_what_it_did_not_read_and_keeps_the_rest(trained: Path, call: Call) -> None:
    more = ["generate", "-m", str(trained), "--length", "2"]
    code, out, err = call(*more, "-", stdin=b"who\0is")
    assert code == 0, err
    assert out.startswith("who\0is")
    code, _, err = call(*more, "who", VERSE)
    assert code == 0
    assert "1 prompt fills the context of 64 tokens, so only the end is read; the first is" in err


# ---------------------------------------------------------------------------- the trace


def test_a_trace_has_the_probabilities_that_the_model_scores_with(model: LanguageModel) -> None:
    trace = model.trace("the cat ", "sat on")
    assert (trace.source, trace.translation) == ("the cat ", "sat on")
    assert not trace.source_tokens
    assert trace.target_tokens[0] == "<s>"
    assert trace.target_tokens[1:] == trace.expected_tokens[:-1]
    assert trace.expected_tokens[trace.n_prompt :] == [*"sat", "▁", *"on"]
    (ids,) = stream_ids(model.vocab, ["the cat sat on"])
    nll = -trace["log_probs"][np.arange(len(ids)), ids].sum()
    assert nll == pytest.approx(model.score("the cat sat on").nll, abs=1e-3)
    lengths = {"tgt": len(ids), "d_model": 48, "piece": model.vocab.size, "head": 4, "d_ff": 96}
    for node in trace.nodes:
        wanted = (lengths.get(axis, 12) for axis in node.axes if axis != "heads·d_v")
        assert set(wanted) <= set(node.shape), node


def test_a_trace_goes_on_as_the_model_does(model: LanguageModel) -> None:
    trace = model.trace("the cat ", length=4)
    assert [trace.translation] == model.generate(["the cat "], length=4)
    assert len(trace.expected_tokens) == trace.n_prompt + 4
    likeliest = trace["logits"].argmax(axis=1)[trace.n_prompt :]
    assert model.vocab.pieces(likeliest.tolist()) == trace.expected_tokens[trace.n_prompt :]


@pytest.mark.parametrize("prompt", ["", "cat " * 40])
def test_a_text_that_is_not_read_at_once_has_no_trace(model: LanguageModel, prompt: str) -> None:
    with pytest.raises(UsageError, match="must have from 1 to 64 pieces"):
        model.trace(prompt, "")


def test_inspect_shows_a_language_model(trained: Path, call: Call, tmp_path: Path) -> None:
    code, out, _ = call("inspect", "-m", str(trained), "the cat ", "sat", "--probabilities")
    assert code == 0
    assert [line.split()[1] for line in out.splitlines()][-3:] == [*"sat"]
    code, _, error = call("inspect", "-m", str(trained), "the cat ", "--steps", "--every-step")
    assert code == 2
    assert "--every-step has an effect only with --trace" in error
    wanted = ["--trace", str(tmp_path / "t.safetensors"), "--every-step"]
    code, _, error = call("inspect", "-m", str(trained), "the cat ", *wanted)
    assert code == 2
    assert "--every-step, --beam-size and --no-memory are for translators" in error
