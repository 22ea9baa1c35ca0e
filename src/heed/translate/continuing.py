"""The next pieces of a translation, and the best translation that continues with each."""

from collections.abc import Callable
from dataclasses import replace

from heed.decode.options import DecodeOptions
from heed.model.interface import Decodable
from heed.translate.arguments import require_callable, require_text
from heed.translate.inspect import next_ids
from heed.translate.lines import LineReader
from heed.translate.parts import Chunk
from heed.translate.result import Continuation, NextToken
from heed.translate.search import Searcher
from heed.translate.whole import read_whole, required, written_pieces


def next_tokens(
    model: Decodable, reader: LineReader, src: str, prefix: str, count: int, *, tag: list[int]
) -> list[NextToken]:
    """The most probable next pieces; arguments and errors are those of `Translator.next_word`."""
    require_text(src=src, prefix=prefix)
    chunk = _whole(reader, src, prefix, tag)
    choices = next_ids(model, reader, chunk, count)
    return [
        NextToken(token=_piece(reader, chunk, token_id), probability=probability)
        for token_id, probability in choices
    ]


def continued(
    searcher: Searcher,
    reader: LineReader,
    text: str,
    prefix: str,
    count: int,
    options: DecodeOptions,
    *,
    tag: list[int],
    is_wanted: Callable[[], bool] | None,
) -> list[Continuation]:
    """The most probable next pieces and their continuations, as `Translator.continuations`."""
    require_text(text=text, prefix=prefix)
    require_callable(is_wanted, "is_wanted")
    chunk = _whole(reader, text, prefix, tag)
    choices = next_ids(searcher.model, reader, chunk, count)
    parts = [
        replace(chunk, prefix=[*chunk.prefix, token_id], key=key)
        for key, (token_id, _) in enumerate(choices)
    ]
    found = searcher.search(
        parts, options, is_wanted=None if is_wanted is None else lambda _: is_wanted()
    )
    return [
        Continuation(
            token=_piece(reader, chunk, token_id),
            probability=probability,
            translation=translation,
        )
        for (token_id, probability), translation in zip(choices, found, strict=True)
    ]


def _whole(reader: LineReader, text: str, prefix: str, tag: list[int]) -> Chunk:
    return required(reader, read_whole(reader, text, tag, prefix), tag, "prefix")


def _piece(reader: LineReader, chunk: Chunk, id: int) -> str:
    return written_pieces(reader.tgt_vocab, [id], chunk.source)[0]
