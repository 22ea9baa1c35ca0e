"""`heed spm-train`, `spm-encode`, `spm-decode`: drop-in replacements for SentencePiece's tools.

They call SentencePiece directly, so scripts written for its tools get the same bytes. heed's own
tokenizer, which `heed train` trains, is in `text/vocab.py`.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import click

from heed.bundle.outputs import require_not_read
from heed.cli.command import command, options
from heed.cli.streams import decode_lines, on_one_line, open_input, open_output
from heed.data.lines import is_compressed, read_lines, require_file, shown_name
from heed.errors import DataError, FormatError, UsageError

TRAIN_EXAMPLES = """
heed spm-train --input=train.en,train.de --model_prefix=joint --vocab_size=8000
heed spm-train --input=train.zh --model_prefix=zh --model_type=char --character_coverage=0.9995
"""
ENCODE_EXAMPLES = """
heed spm-encode --model=joint.model < train.en > train.en.pieces
heed spm-encode --model=joint.model --output_format=id --extra_options=bos:eos train.en
"""
DECODE_EXAMPLES = """
heed spm-decode --model=joint.model < out.pieces > out.txt
heed spm-decode --model=joint.model --input_format=id < out.ids
"""

MAX_NBEST_SIZE = 512
"""SentencePiece's own limit."""

_NUMBER = re.compile(r"-\d*\.?\d+")
"""A value that begins like a flag."""

_FAILED_CHECK = re.compile(r"^[A-Z_]+: \S+\(\d+\) \[[^\]]*\] ?")
"""What SentencePiece puts before a message: a place in its source, and a condition."""

_ONLY_PYTHON = (
    *("arg", "logstream", "model_writer", "normalizer", "pretokenizer", "sentence_iterator"),
    *("sentence_reader", "allow_inconsistent_pretokenization"),
)
"""Arguments of SentencePiece's function in Python that are no flags of its program."""

OUTPUTS = ("piece", "id", "sample_piece", "sample_id", "nbest_piece", "nbest_id")

option = options("Options")

Encode = Callable[[str], list[list[Any]]]


@command(
    "spm-train",
    "Train a SentencePiece model (as spm_train).",
    examples=TRAIN_EXAMPLES,
    ignore_unknown_options=True,
)
@option("--input input_paths", str, "Training files, comma-separated.", required=True)
@option("--model-prefix", str, "Writes PREFIX.model and PREFIX.vocab.", required=True)
@option("--vocab-size", int, "Number of pieces.", default=8000)
@option("--model-type", ("unigram", "bpe", "char", "word"), "Kind of pieces.", default="unigram")
@option("--character-coverage", float, "Share of characters covered.", default=0.9995)
@click.argument("others", nargs=-1, type=click.UNPROCESSED)
def spm_train(
    input_paths: str,
    model_prefix: str,
    vocab_size: int,
    model_type: str,
    character_coverage: float,
    others: tuple[str, ...],
) -> None:
    """Train a SentencePiece model. All other flags of spm_train are passed on unchanged.

    They are written as spm_train reads them: --name=value, --name value, or --name for true.
    """
    settings = _others(others)
    for path in input_paths.split(","):
        with open_input(path):
            pass
    for ending in ("model", "vocab"):
        # SentencePiece's own flags name files to read, too.
        inputs = [*input_paths.split(","), *map(str, settings.values())]
        require_not_read(f"{model_prefix}.{ending}", inputs)
    import sentencepiece

    text: dict[str, Any] = {"input": input_paths}
    if any(is_compressed(path) for path in input_paths.split(",")):
        text = {"sentence_iterator": _training_lines(input_paths.split(","))}
    try:
        sentencepiece.SentencePieceTrainer.train(
            **text,
            model_prefix=model_prefix,
            vocab_size=vocab_size,
            model_type=model_type,
            character_coverage=character_coverage,
            **settings,
        )
    except ValueError as error:
        problem = str(error).rpartition(": ")[2]
        value = problem.partition('"')[2].rpartition('"')[0]
        flags = " or ".join(f"--{name}" for name, given in settings.items() if given == value)
        raise UsageError(f"{flags or 'a flag'} has a wrong value: {problem}") from None
    except (RuntimeError, OSError) as error:
        if "sentences_.empty()" in str(error):
            raise DataError(f"{input_paths} must have text to learn from, but has none.") from None
        problem = _FAILED_CHECK.sub("", str(error)) or str(error)
        raise DataError(f"SentencePiece cannot train: {problem}") from None


@command("spm-encode", "Text to pieces or ids (as spm_encode).", examples=ENCODE_EXAMPLES)
@option("--model model_path", str, "SentencePiece model.", required=True)
@option("-i --input input_path", str, "File to read.", default="-", metavar="FILE")
@option("-o --output output_path", str, "File to write.", default="-", metavar="FILE")
@option("--output-format", OUTPUTS, "Format of the output.", default="piece")
@option("--extra-options", str, "bos, eos, reverse: joined with colons.", default="")
@option("--nbest-size", int, "Number of segmentations to sample from or to print.", default=10)
@option("--alpha", float, "Sharpness of sampling.", default=0.5)
@option("--random-seed", int, "Seed of sampling.")
@click.argument("files", nargs=-1)
def spm_encode(
    model_path: str,
    input_path: str,
    output_path: str,
    output_format: str,
    extra_options: str,
    nbest_size: int,
    alpha: float,
    random_seed: int | None,
    files: tuple[str, ...],
) -> None:
    """Split text into pieces or ids."""
    require_not_read(output_path, [model_path, *(files or (input_path,))])
    processor = _load(model_path)
    if random_seed is not None:
        import sentencepiece

        sentencepiece.set_random_generator_seed(random_seed)
    encode = _encoder(processor, output_format, extra_options, nbest_size, alpha)
    with open_output(output_path) as out:
        for line in _lines(files or (input_path,)):
            for cut in encode(line):
                out.write(" ".join(on_one_line(str(token)) for token in cut))


@command("spm-decode", "Pieces or ids to text (as spm_decode).", examples=DECODE_EXAMPLES)
@option("--model model_path", str, "SentencePiece model.", required=True)
@option("-i --input input_path", str, "File to read.", default="-", metavar="FILE")
@option("-o --output output_path", str, "File to write.", default="-", metavar="FILE")
@option("--input-format", ("piece", "id"), "Format of the input.", default="piece")
@option("--extra-options", str, "bos, eos, reverse: joined with colons.", default="")
@click.argument("files", nargs=-1)
def spm_decode(
    model_path: str,
    input_path: str,
    output_path: str,
    input_format: str,
    extra_options: str,
    files: tuple[str, ...],
) -> None:
    """Join pieces or ids into text."""
    require_not_read(output_path, [model_path, *(files or (input_path,))])
    processor, is_reversed = _load(model_path), "reverse" in _extras(extra_options)
    with open_output(output_path) as out:
        for number, line in enumerate(_lines(files or (input_path,)), start=1):
            tokens = line.split(" ") if line else []
            tokens = tokens[::-1] if is_reversed else tokens
            if input_format == "piece":
                text = processor.decode_pieces(tokens)
            else:
                text = processor.decode_ids(_ids(tokens, number, processor.get_piece_size()))
            # Byte pieces can spell a line break; the output must have one line for each line.
            out.write(text.replace("\n", " ").replace("\r", " "))


def _training_lines(paths: Iterable[str]) -> Iterator[str]:
    return (line for path in paths for line in read_lines(path))


def _others(arguments: Iterable[str]) -> dict[str, Any]:
    """SentencePiece's own flags: `--name=value`, `--name value`, or `--name`, which means true."""
    settings: dict[str, Any] = {}
    waiting = ""  # a name that may still get a value
    for argument in arguments:
        if waiting and (not argument.startswith("-") or _NUMBER.fullmatch(argument)):
            settings[waiting], waiting = argument, ""
            continue
        flag, equals, value = argument.partition("=")
        if not flag.startswith("--"):
            raise UsageError(
                f"Flags for SentencePiece must be like --name=value, but one is {argument!r}."
            )
        name = flag[2:].replace("-", "_")
        if name in _ONLY_PYTHON:
            raise UsageError(f"there is no option {flag} of spm_train.")
        settings[name] = value if equals else "true"
        waiting = "" if equals else name
    return settings


def _load(path: str) -> Any:
    require_file(path)
    import sentencepiece

    processor: Any = sentencepiece.SentencePieceProcessor()
    try:
        processor.load(path)
    except (RuntimeError, OSError):
        raise FormatError(f"{path} is not a SentencePiece model.") from None
    return processor


def _extras(text: str) -> list[str]:
    """The words of `--extra_options`, in order."""
    wishes = [wish for wish in text.split(":") if wish]
    if not set(wishes) <= {"bos", "eos", "reverse"}:
        raise UsageError(
            f"--extra_options must be bos, eos or reverse, joined with colons, but is {text!r}."
        )
    return wishes


def _encoder(
    processor: Any, output_format: str, extra_options: str, nbest_size: int, alpha: float
) -> Encode:
    """Return a function from a text to its segmentations (one, except for n-best)."""
    how, _, what = output_format.rpartition("_")
    kind = {"piece": str, "id": int}[what]
    ends: dict[str, Any] = {"bos": processor.bos_id(), "eos": processor.eos_id()}
    wishes = _extras(extra_options)
    if missing := [wish for wish in wishes if ends.get(wish, 0) < 0]:
        raise UsageError(f"--extra_options={missing[0]}: the model has no such piece.")
    if kind is str:
        ends = {name: processor.id_to_piece(n) for name, n in ends.items() if n >= 0}
    _check_drawing(how, nbest_size, alpha)

    def encode(text: str) -> list[list[Any]]:
        try:
            if how == "nbest":
                cuts = processor.nbest_encode(text, out_type=kind, nbest_size=nbest_size)
            elif how == "sample":
                drawing = {"enable_sampling": True, "nbest_size": nbest_size, "alpha": alpha}
                cuts = [processor.encode(text, out_type=kind, **drawing)]
            else:
                cuts = [processor.encode(text, out_type=kind)]
        except RuntimeError as error:
            problem = str(error).rpartition("] ")[2]
            raise DataError(f"SentencePiece cannot write {output_format}: {problem}") from None
        return [_extended(cut, wishes, ends) for cut in cuts]

    return encode


def _check_drawing(how: str, nbest_size: int, alpha: float) -> None:
    """Refuse values that SentencePiece would refuse at the first line."""
    if how and nbest_size > MAX_NBEST_SIZE:
        raise UsageError(f"--nbest-size must be at most {MAX_NBEST_SIZE}, but is {nbest_size}.")
    if how == "sample" and nbest_size in (0, 1):
        raise UsageError(
            f"--nbest-size must be from 2 to {MAX_NBEST_SIZE} to sample, or -1 to sample from all "
            f"segmentations, but is {nbest_size}."
        )
    if how == "sample" and not 0 <= alpha < math.inf:
        raise UsageError(f"--alpha must be finite and at least 0, but is {alpha}.")


def _extended(cut: list[Any], wishes: list[str], ends: dict[str, Any]) -> list[Any]:
    for wish in wishes:
        if wish == "reverse":
            cut = cut[::-1]
        else:
            cut = [ends["bos"], *cut] if wish == "bos" else [*cut, ends["eos"]]
    return cut


def _lines(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        with ExitStack() as stack:
            yield from decode_lines(stack.enter_context(open_input(path)), shown_name(path))


def _ids(tokens: list[str], number: int, size: int) -> list[int]:
    with suppress(ValueError):
        ids = [int(token) for token in tokens]
        if all(0 <= i < size for i in ids):
            return ids
    raise DataError(f"Line {number} must hold ids from 0 to {size - 1}, separated by blanks.")
