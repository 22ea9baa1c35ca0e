import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

TRAIN = ("spm-train", "--input=FOLDER/text", "--model_prefix=FOLDER/x")
TEXT = ["A man is riding a bike.", "Two dogs play in the snow.", "纽约是一座城市", ""]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model made by heed's spm-train, and the same by SentencePiece itself."""
    from heed.cli.main import run

    folder = tmp_path_factory.mktemp("spm")
    corpus = folder / "text"
    corpus.write_text("".join(f"{line}\n" for line in TEXT * 20), encoding="utf-8")
    flags = ["--vocab_size=60", "--model_type=bpe", "--hard_vocab_limit=false"]
    prefix = folder / "ours"
    assert run(["spm-train", f"--input={corpus}", f"--model_prefix={prefix}", *flags]) == 0
    arguments = f"--input={corpus} --model_prefix={folder}/theirs {' '.join(flags)}"
    sentencepiece.SentencePieceTrainer.Train(arguments)
    endless: dict[str, Any] = {"model_prefix": str(folder / "endless"), "bos_id": -1, "eos_id": -1}
    lines = iter(TEXT * 20)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines, vocab_size=40, hard_vocab_limit=False, **endless
    )
    (folder / "empty").touch()
    (folder / "latin").write_bytes(b"good\nb\xe4d\n")
    return folder


def test_spm_train_learns_what_sentencepiece_learns(trained: Path) -> None:
    vocab = [(trained / f"{name}.vocab").read_text(encoding="utf-8") for name in ("ours", "theirs")]
    assert vocab[0] == vocab[1]


def test_encode_and_decode_are_those_of_sentencepiece(
    call: Callable[..., Any], trained: Path
) -> None:
    data = "".join(f"{line}\n" for line in TEXT).encode()
    model = str(trained / "ours.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    code, pieces, _ = call("spm-encode", "--model", model, stdin=data)
    assert code == 0
    assert pieces.splitlines() == [" ".join(processor.encode(line, out_type=str)) for line in TEXT]
    _, ids, _ = call("spm-encode", f"--model={model}", "--output_format=id", stdin=data)
    assert ids.splitlines() == [" ".join(map(str, processor.encode(line))) for line in TEXT]
    assert call("spm-decode", f"--model={model}", stdin=pieces.encode())[1].encode() == data
    flags = [f"--model={model}", "--input_format=id"]
    found = call("spm-decode", *flags, stdin=ids.encode())[1].splitlines()
    assert found == [processor.decode(processor.encode(line)) for line in TEXT]


def test_files_extra_options_and_n_best_work(
    call: Callable[..., Any], trained: Path, tmp_path: Path
) -> None:
    model, source, target = str(trained / "ours.model"), tmp_path / "in", tmp_path / "out"
    source.write_text("A man\n", encoding="utf-8")
    flags = ["--model", model, "--extra_options=bos:eos", "-o", str(target), str(source)]
    assert call("spm-encode", *flags)[0] == 0
    pieces = target.read_text(encoding="utf-8").split()
    assert (pieces[0], pieces[-1]) == ("<s>", "</s>")
    backwards = ["--model", model, "--extra_options=reverse"]
    data = call("spm-encode", *backwards, stdin=b"A man\n")[1].encode()
    assert data.decode().split() == pieces[-2:0:-1]
    assert call("spm-decode", *backwards, stdin=data)[1] == "A man\n"
    flags = ["--model", model, "--output_format=sample_piece", "--random_seed=3", "--alpha=0.5"]
    drawn = call("spm-encode", *flags, stdin=b"A man is riding\n")[1]
    assert drawn.replace(" ", "").strip() == "▁A▁man▁is▁riding"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["spm-encode", "--model", "FOLDER/text"], 1, "text is not a SentencePiece model."),
        (["spm-encode", "--model", "FOLDER/no"], 1, "no does not exist."),
        (
            ["spm-encode", "--model", "MODEL", "--output_format=nbest_id", "--nbest_size=513"],
            2,
            "--nbest-size must be at most 512, but is 513.",
        ),
        (
            ["spm-encode", "--model", "MODEL", "--output_format=sample_id", "--nbest_size=1"],
            2,
            "--nbest-size must be from 2 to 512 to sample, or -1 to sample from all segm",
        ),
        (
            ["spm-encode", "--model", "MODEL", "--output_format=sample_id", "--alpha=nan"],
            2,
            "--alpha must be finite and at least 0, but is nan.",
        ),
        (
            ["spm-encode", "--model", "MODEL", "--output_format=nbest_id"],
            1,
            "SentencePiece cannot write nbest_id: NBestEncode is not available for the current",
        ),
        (
            ["spm-encode", "--model", "FOLDER/endless.model", "--extra_options=reverse:eos"],
            2,
            "--extra_options=eos: the model has no such piece.",
        ),
        (
            ["spm-encode", "--model", "MODEL", "FOLDER/latin"],
            1,
            "latin line 2: must be UTF-8, but byte 2 of the line is 0xE4. Convert the file: iconv ",
        ),
        (["spm-encode", "--model", "MODEL", "--extra_options=x"], 2, "must be bos, eos or reverse"),
        (["spm-decode", "--model", "MODEL", "--input_format=id"], 1, "Line 1 must hold ids from 0"),
        (["spm-train", "--input=FOLDER/no", "--model_prefix=x"], 1, "no does not exist."),
        (
            ["spm-train", "--input=FOLDER/text", "--model_prefix=x", "-x"],
            2,
            "must be like --name=value, but one is",
        ),
        (
            [*TRAIN, "--num_threads=2", "--byte_fallback=maybe"],
            2,
            'heed: --byte_fallback has a wrong value: cannot parse "maybe" as bool.',
        ),
        ([*TRAIN, "--num_threads", "--bos_id=1"], 2, "heed: --num_threads has a wrong value: "),
        ([*TRAIN, "--logstream=x"], 2, "heed: there is no option --logstream of spm_train."),
        (
            ["spm-train", "--input=FOLDER/text", "--model_prefix=FOLDER/x", "--xyz=1"],
            1,
            "SentencePiece cannot train:",
        ),
        (
            ["spm-train", "--input=FOLDER/empty", "--model_prefix=FOLDER/x"],
            1,
            "empty must have text to learn from, but has none.",
        ),
        (
            ["spm-train", "--input=FOLDER/text", "--model_prefix=FOLDER/x", "--vocab_size=90000"],
            1,
            "heed: SentencePiece cannot train: Vocabulary size too high (90000). Please set it to ",
        ),
    ],
)
def test_wrong_requests_are_told(
    call: Callable[..., Any], trained: Path, arguments: list[str], code: int, words: str
) -> None:
    swapped = [
        argument.replace("MODEL", str(trained / "ours.model")).replace("FOLDER", str(trained))
        for argument in arguments
    ]
    found, _, err = call(*swapped, stdin=b"99999 x\n")
    assert found == code, err
    assert words in err


def test_spm_train_learns_from_compressed_text_what_it_learns_from_plain_text(
    call: Callable[..., Any], trained: Path
) -> None:
    data = (trained / "text").read_bytes()
    (trained / "text.gz").write_bytes(gzip.compress(data))
    flags = ["--vocab_size=60", "--model_type=bpe", "--hard_vocab_limit=false"]
    prefix = trained / "packed"
    code, _, err = call(
        "spm-train", f"--input={trained / 'text.gz'}", f"--model_prefix={prefix}", *flags
    )
    assert code == 0, err
    found = [(trained / f"{name}.vocab").read_bytes() for name in ("ours", "packed")]
    assert found[0] == found[1]


def test_flags_may_be_spelled_as_spm_train_reads_them(
    call: Callable[..., Any], trained: Path
) -> None:
    usual = ["spm-train", f"--input={trained / 'text'}", "--vocab_size=330"]
    own = {
        "equals": ["--hard_vocab_limit=false", "--byte_fallback=true", "--bos_id=-1"],
        "blanks": ["--hard-vocab-limit", "false", "--byte_fallback", "--bos_id", "-1"],
    }
    for name, flags in own.items():
        code, _, err = call(*usual, f"--model_prefix={trained / name}", *flags)
        assert code == 0, err
    found = [(trained / f"{name}.vocab").read_text(encoding="utf-8") for name in own]
    assert found[0] == found[1]
    assert "<0xFF>" in found[0] and "<s>\t" not in found[0]


def test_a_model_without_ends_encodes(call: Callable[..., Any], trained: Path) -> None:
    model = str(trained / "endless.model")
    processor = sentencepiece.SentencePieceProcessor(model_file=model)
    expected = " ".join(processor.encode("A man", out_type=str))
    assert call("spm-encode", "--model", model, stdin=b"A man\n") == (0, f"{expected}\n", "")


def test_a_damaged_compressed_file_is_told(call: Callable[..., Any], trained: Path) -> None:
    (trained / "cut.gz").write_bytes(gzip.compress(b"A man\n" * 1000)[:-9])
    code, _, err = call(
        "spm-train", f"--input={trained / 'cut.gz'}", f"--model_prefix={trained / 'x'}"
    )
    assert code == 1
    assert "cut.gz is damaged after line" in err


@pytest.fixture(scope="module")
def with_breaks(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model with byte pieces, and a piece that is a line break."""
    prefix = tmp_path_factory.mktemp("breaks") / "m"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT * 20),
        model_prefix=str(prefix),
        vocab_size=330,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["\n", "\r"],
        hard_vocab_limit=False,
    )
    return f"{prefix}.model"


def test_a_byte_that_is_a_line_break_stays_out_of_the_text(
    call: Callable[..., Any], with_breaks: str
) -> None:
    code, out, err = call("spm-decode", "--model", with_breaks, stdin=b"<0x0D> A <0x0A>\n")
    assert code == 0, err
    assert out == " A \n"


def test_a_piece_that_is_a_line_break_stays_on_its_line(
    call: Callable[..., Any], with_breaks: str
) -> None:
    code, out, err = call("spm-encode", "--model", with_breaks, stdin=b"A\rA\n")
    assert code == 0, err
    assert out.split() == ["▁A", "\\r", "A"]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["spm-encode", "--model=M", "-i", "x", "-o", "x"], "x"),
        (["spm-encode", "--model=M", "y", "x", "-o", "./x"], "x"),
        (["spm-decode", "--model=M", "-i", "x", "-o", "x"], "x"),
        (["spm-encode", "--model=M", "-i", "x", "-o", "M"], "M"),
        (["spm-train", "--input=y,x.model", "--model_prefix=x"], "x.model"),
        (["spm-train", "--input=x.vocab", "--model_prefix=x"], "x.vocab"),
        (["spm-train", "--input=x", "--model_prefix=x", "--seed_sentencepieces_file=x.model"], "x"),
    ],
)
def test_an_output_that_is_read_is_refused(
    call: Callable[..., Any],
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    kept: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("x", "y", "x.model", "x.vocab"):
        (tmp_path / name).write_text("A man\n")
    (tmp_path / "M").write_bytes((trained / "ours.model").read_bytes())
    before = (tmp_path / kept).read_bytes()
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert "are the same file: it would be overwritten while it is read." in err
    assert (tmp_path / kept).read_bytes() == before
