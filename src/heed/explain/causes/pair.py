"""`Pair`: a source and a translation as ids, with the torch model that computes them.

Whatever `heed.model.trace.editing` changes in the model is changed here too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import takewhile
from typing import Any, Self

import torch
from torch import Tensor

from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions, options_from
from heed.model.masks import padding_mask
from heed.model.network import TorchNetwork
from heed.model.trace import listening
from heed.text.vocab import Vocab
from heed.translate.arguments import require_text
from heed.translate.protect import text_of
from heed.translate.source import Source
from heed.translate.trace import Trace
from heed.translate.tracer import Tracer
from heed.translate.translator import Translator
from heed.translate.whole import read_pair, read_pieces, read_whole, required, written_pieces


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A source and a translation of it.

    Attributes:
        tracer: the model in torch, and both vocabularies.
        options: options of searches.
        src_ids: ids that the encoder reads, `<eos>` last.
        tgt_ids: ids of the translation, without `<bos>` and `<eos>`.
        line: the source, if it has protected spans.
        guide: the translation of a similar source in the translator's memory, which searches
            follow; None = none.
        before_pass: called before each pass through the model; may raise to end the work.
    """

    tracer: Tracer = field(repr=False)
    options: DecodeOptions
    src_ids: list[int]
    tgt_ids: list[int]
    line: Source | None = field(default=None, repr=False)
    guide: Guide | None = field(default=None, repr=False)
    before_pass: Callable[[], None] = field(default=lambda: None, repr=False)

    @classmethod
    def of(
        cls,
        translator: Translator,
        source: str,
        translation: str | None = None,
        *,
        target_lang: str | None = None,
        **options: Any,
    ) -> Self:
        """Encode a source and its translation.

        Args:
            translator: a translator loaded from a folder.
            source: a line.
            translation: its translation; None = search for one.
            target_lang: one of the model's target languages.
            **options: fields of `DecodeOptions`.

        Raises:
            DataError: the source or the translation is too long to be read in one piece.
            UsageError: one of them is not a string.
        """
        require_text(source=source, translation="" if translation is None else translation)
        reader = translator.reader
        tag = reader.tag(target_lang)
        chunk = (
            read_whole(reader, source, tag)
            if translation is None
            else read_pair(reader, source, translation, tag)
        )
        required(reader, chunk, tag, "translation")
        tracer = Tracer(translator.traced, translator.src_vocab, translator.tgt_vocab)
        pair = cls(
            tracer=tracer,
            options=options_from(translator.options, options),
            src_ids=chunk.src_ids,
            tgt_ids=chunk.prefix,
            line=chunk.source,
            guide=chunk.guide,
        )
        return pair if translation is not None else replace(pair, tgt_ids=pair.search())

    @classmethod
    def of_trace(
        cls,
        translator: Translator,
        trace: Trace,
        *,
        before_pass: Callable[[], None] = lambda: None,
        **options: Any,
    ) -> Self:
        """The pair of a trace, with exactly the pieces that were traced.

        Args:
            translator: the translator that made the trace.
            trace: trace of a sentence and its translation.
            before_pass: called before each pass, and after each step of a search.
            **options: fields of `DecodeOptions`.
        """
        trace = trace.without_padding()
        src_vocab, tgt_vocab = translator.src_vocab, translator.tgt_vocab
        src_ids = trace.source_ids or _ids(src_vocab, trace.source_tokens)
        tgt_ids = trace.expected_ids[:-1] or _ids(tgt_vocab, trace.target_tokens[1:])
        tags = {src_vocab.language_id(language) for language in src_vocab.languages}
        tag = [*takewhile(tags.__contains__, src_ids)]
        chunk = read_whole(translator.reader, trace.source, tag)
        written = text_of(tgt_ids, tgt_vocab, chunk.source)
        if (chunk.src_ids, written) != (src_ids, trace.translation):  # it was given
            chunk = read_pair(translator.reader, trace.source, trace.translation, tag)
        return cls(
            tracer=Tracer(translator.traced, src_vocab, tgt_vocab, on_progress=before_pass),
            options=options_from(translator.options, options),
            src_ids=src_ids,
            tgt_ids=tgt_ids,
            line=chunk.source,
            guide=chunk.guide,
            before_pass=before_pass,
        )

    @property
    def network(self) -> TorchNetwork:
        """The model."""
        return self.tracer.model.network

    @property
    def tgt_vocab(self) -> Vocab:
        """Pieces of the target side."""
        return self.tracer.tgt_vocab

    @property
    def source_tokens(self) -> list[str]:
        """The pieces that the encoder reads, `<eos>` last."""
        return read_pieces(self.tracer.src_vocab, self.src_ids, self.line)

    @property
    def target_tokens(self) -> list[str]:
        """The pieces that the decoder reads, `<bos>` first."""
        return written_pieces(self.tgt_vocab, self.tgt_in_ids, self.line)

    @property
    def expected_tokens(self) -> list[str]:
        """The piece after each of `target_tokens`, `<eos>` last."""
        return written_pieces(self.tgt_vocab, self.tgt_out_ids, self.line)

    @property
    def tgt_in_ids(self) -> list[int]:
        """Ids that the decoder reads."""
        return [self.tgt_vocab.bos_id, *self.tgt_ids]

    @property
    def tgt_out_ids(self) -> list[int]:
        """Ids that the decoder should write."""
        return [*self.tgt_ids, self.tgt_vocab.eos_id]

    @property
    def translation(self) -> str:
        """The translation as text."""
        return self.text_of(self.tgt_ids)

    def text_of(self, tgt_ids: list[int]) -> str:
        """The text of target ids."""
        return text_of(tgt_ids, self.tgt_vocab, self.line)

    def without_words(self) -> "Pair":
        """The same pair with `<unk>` for each token except `<eos>` and language tags."""
        src, tgt = self.tracer.src_vocab, self.tgt_vocab
        return replace(
            self,
            src_ids=[i if src.is_control(i) else src.unk_id for i in self.src_ids],
            tgt_ids=[tgt.unk_id] * len(self.tgt_ids),
        )

    def search(self) -> list[int]:
        """The ids of the best translation that the model finds now."""
        return self.tracer.best(self.src_ids, self.options, line=self.line, guide=self.guide).ids

    def log_probs(self, n_rows: int = 1) -> Tensor:
        """Log-probs of all pieces after each target position, with gradients if they are enabled.

        Args:
            n_rows: number of copies of the pair in the batch.

        Returns:
            `(n_rows, tgt_len, tgt_vocab_size)`.
        """
        return self.log_probs_of(
            self.rows(self.src_ids, n_rows), self.rows(self.tgt_in_ids, n_rows)
        )

    def log_probs_of(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """The same for other ids, `(n_rows, src_len)` and `(n_rows, tgt_len)`."""
        self.before_pass()
        # The attention kernel that is used without a listener rounds differently.
        with listening(self.network, lambda *_: None):
            return self.network.teacher_forced(src, tgt_in).log_softmax(dim=-1)

    def states(self, n_rows: int) -> Tensor:
        """The states that the output layer reads, `(n_rows, tgt_len, d_model)`.

        Args:
            n_rows: number of copies of the pair in the batch.
        """
        self.before_pass()
        src = self.rows(self.src_ids, n_rows)
        mask = padding_mask(src, self.network.pad_id)
        with listening(self.network, lambda *_: None):
            states: Tensor = self.network(src, self.rows(self.tgt_in_ids, n_rows), mask)
        return states

    def token_log_probs(self, n_rows: int = 1) -> Tensor:
        """Log-probs of the translation's own tokens and of `<eos>`, `(n_rows, tgt_len)`."""
        return self.of_expected(self.log_probs(n_rows))

    def of_expected(self, log_probs: Tensor) -> Tensor:
        """The entries of the expected tokens: `(n_rows, tgt_len, vocab)` → `(n_rows, tgt_len)`."""
        expected = self.rows(self.tgt_out_ids, len(log_probs))
        return log_probs.gather(-1, expected[..., None])[..., 0]

    def rows(self, ids: list[int], n_rows: int) -> Tensor:
        """Ids repeated as the rows of a batch, `(n_rows, length)`."""
        return torch.tensor([ids], device=self.device).expand(n_rows, -1)

    @property
    def n_rows_at_once(self) -> int:
        """The number of batch rows, at most 64, whose log-probs take less than 128 MiB."""
        n_numbers = len(self.tgt_out_ids) * self.tgt_vocab.size
        return max(1, min(64, 2**25 // n_numbers))

    @property
    def device(self) -> torch.device:
        """The device of the model."""
        return self.network.output.weight.device

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each named tensor of this pair, without the batch."""
        found: dict[str, tuple[int, ...]] = {}

        def hear(name: str, tensor: Tensor) -> None:
            found[name] = tuple(tensor.shape[1:])

        with torch.no_grad(), listening(self.network, hear):
            self.log_probs()
        return found


def _ids(vocab: Vocab, pieces: list[str]) -> list[int]:
    """The ids of pieces; no two ids have the same piece."""
    ids = {piece: id for id, piece in enumerate(vocab.pieces(range(vocab.size)))}
    return [ids[piece] for piece in pieces]
