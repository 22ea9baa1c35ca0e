"""What may come next in a translation: pieces, and how each of them would go on."""

from collections.abc import Callable

from heed.decode.options import DecodeOptions
from heed.model.interface import Decodable
from heed.translate.inspect import next_ids
from heed.translate.lines import LineReader, require_text
from heed.translate.parts import Chunk
from heed.translate.result import Continuation, NextToken
from heed.translate.search import Searcher


def next_tokens(
    model: Decodable, reader: LineReader, src: str, prefix: str, count: int, *, tag: list[int]
) -> list[NextToken]:
    """The most probable next pieces; arguments and errors are those of `Translator.next_word`."""
    require_text(src=src, prefix=prefix)
    src_ids = reader.whole_src(src, tag)
    choices = next_ids(model, reader, src_ids, reader.whole_tgt(prefix, "prefix"), count)
    return [
        NextToken(token=reader.tgt_vocab.pieces([token_id])[0], probability=probability)
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
    """The most probable next pieces and how each would go on, as `Translator.continuations`."""
    require_text(text=text, prefix=prefix)
    src_ids = reader.whole_src(text, tag)
    begun = reader.whole_tgt(prefix, "prefix")
    choices = next_ids(searcher.model, reader, src_ids, begun, count)
    parts = [Chunk(src_ids, [*begun, token_id], key) for key, (token_id, _) in enumerate(choices)]
    found = searcher.search(
        parts, options, is_wanted=None if is_wanted is None else lambda _: is_wanted()
    )
    return [
        Continuation(
            token=reader.tgt_vocab.pieces([token_id])[0],
            probability=probability,
            translation=translation,
        )
        for (token_id, probability), translation in zip(choices, found, strict=True)
    ]
