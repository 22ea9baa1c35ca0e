"""Lines as parts that fit a model, and parts as batches: everything before the first tensor.

Not here: the model or the search (`translate.py`), nor where a line may be cut
(`text/segment.py`). A part's ids: language tag where the model has several, pieces, `<eos>`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from heed.errors import ConfigError, DataError
from heed.text.normalize import normalize
from heed.text.segment import cut
from heed.text.vocab import Vocab

MAX_SOURCE_TOKENS = 256
"""Longest source translated in one piece when the model folder does not say otherwise."""

PARTS_PER_LINE = 1 << 24
"""Distance between the keys of two lines: more parts than any line can be cut into."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of one line that goes through the model in one piece.

    Attributes:
        src_ids: what the encoder reads.
        prefix: target ids that the translation must begin with.
        key: names the part among all of a stream; seeds its own random draws.
    """

    src_ids: list[int]
    prefix: list[int]
    key: int


class LineReader:
    """Turns lines into what a model reads.

    Args:
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        target_lang: language of the translation where a call names none.
        target_langs: all target languages of a model that has several.
        max_source_tokens: a line of more pieces is cut.
    """

    def __init__(
        self,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        target_lang: str = "",
        target_langs: Sequence[str] = (),
        max_source_tokens: int = MAX_SOURCE_TOKENS,
    ) -> None:
        self.src_vocab = src_vocab
        self.tgt_vocab = tgt_vocab
        self.target_lang = target_lang
        self.target_langs = tuple(target_langs)
        self.max_source_tokens = max_source_tokens

    def tag(self, target_lang: str | None) -> list[int]:
        """The piece that opens a source of a model with several targets, else nothing.

        Raises:
            ConfigError: the model does not translate into `target_lang`.
        """
        if not self.target_langs:
            if target_lang not in (None, "", self.target_lang):
                raise ConfigError(
                    f"This model translates into {self.target_lang or 'one language'} only, "
                    f"not into {target_lang}."
                )
            return []
        lang = target_lang or self.target_lang or self.target_langs[0]
        if lang not in self.target_langs:
            raise ConfigError(
                f"This model translates into {', '.join(self.target_langs)}, not into {lang}."
            )
        return [self.src_vocab.language_id(lang)]

    def src_ids(self, text: str, tag: list[int]) -> list[int]:
        """What the encoder reads for a whole text, however long."""
        return [*tag, *self.src_vocab.encode(normalize(text)), self.src_vocab.eos_id]

    def src_tokens(self, src_ids: list[int]) -> list[str]:
        """The pieces of a source that a person typed."""
        return self.src_vocab.pieces(i for i in src_ids if not self.src_vocab.is_control(i))

    def tgt_ids(self, text: str) -> list[int]:
        """The ids of a translation or of its beginning, without `<bos>` and `<eos>`."""
        text = normalize(text)
        return self.tgt_vocab.encode(text) if text else []

    def parts(self, text: str, prefix: str, tag: list[int], line: int) -> list[Part]:
        """A line in one part or, when it is too long, in several; in none when it is blank."""
        text = normalize(text)
        if not text:
            return []
        stretches = cut(
            text,
            max_length=self.max_source_tokens,
            length=lambda stretch: len(self.src_vocab.encode(stretch.strip())),
        )
        begun = self.tgt_ids(prefix)
        return [
            Part(
                self.src_ids(stretch, tag), [] if number else begun, line * PARTS_PER_LINE + number
            )
            for number, stretch in enumerate(stretches)
            if stretch.strip()
        ]


def batches(
    lengths: Sequence[int], max_tokens: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Group items of like length, shortest first.

    Args:
        lengths: of each item.
        max_tokens: bounds longest × count in a batch, unless one item alone exceeds it.
        max_rows: bounds the count; None = no such bound.

    Yields:
        Positions in `lengths`.
    """
    batch: list[int] = []
    for item in sorted(range(len(lengths)), key=lengths.__getitem__):
        is_full = (len(batch) + 1) * lengths[item] > max_tokens or len(batch) == max_rows
        if batch and is_full:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def buffers(
    lines: Iterable[str], prefixes: Iterable[str] | None, *, max_lines: int, max_chars: int
) -> Iterator[tuple[list[str], list[str]]]:
    """Gather a stream into portions.

    Yields:
        Lines and a prefix for each.

    Raises:
        DataError: there are fewer prefixes than lines.
    """
    remaining = None if prefixes is None else iter(prefixes)
    portion: tuple[list[str], list[str]] = ([], [])
    n_chars = 0
    for number, line in enumerate(lines, start=1):
        prefix = "" if remaining is None else next(remaining, None)
        if prefix is None:
            raise DataError(
                f"There must be one prefix for each line, but line {number} has none: "
                f"there are only {number - 1}. Use empty lines where anything may come first."
            )
        portion[0].append(line)
        portion[1].append(prefix)
        n_chars += len(line)
        if len(portion[0]) >= max_lines or n_chars >= max_chars:
            yield portion
            portion, n_chars = ([], []), 0
    if portion[0]:
        yield portion
