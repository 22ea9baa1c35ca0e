"""A masked language model: the most probable pieces for the gaps of a text."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heed.errors import UsageError
from heed.model.interface import Decodable
from heed.text.normalize import normalize
from heed.text.spans import BLANK_SIGN
from heed.text.stream import stream_ids
from heed.text.vocab import Vocab
from heed.translate.arguments import require_text, require_whole
from heed.translate.twin import Twin, open_with_twin, traceable

if TYPE_CHECKING:
    from heed.translate.trace import Trace

MASK = "<mask>"


@dataclass(frozen=True, kw_only=True)
class Filling:
    """A piece for a gap.

    Attributes:
        word: its text.
        probability: its probability in the model.
        continues_word: it is joined to the word before the gap, without a blank.
    """

    word: str
    probability: float
    continues_word: bool = False


def load_masked(
    folder: str | Path, *, device: str = "auto", dtype: str = "auto", threads: int | None = None
) -> "MaskedModel":
    """Open a model that was trained with `--task mlm`.

    Args:
        folder: a model or run folder.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: the type to compute in.
        threads: CPU threads; None = as many as there are cores.

    Raises:
        FormatError: the folder is not a model, or damaged.
        ConfigError: it has another task, or device and `dtype` do not go together.
    """
    found = open_with_twin(folder, device=device, dtype=dtype, threads=threads, task="mlm")
    return MaskedModel(
        found.model,
        found.bundle.src_vocab,
        context=found.options.max_length,
        twin=found.twin,
    )


class MaskedModel:
    """A model and its vocabulary.

    Args:
        model: an encoder that predicts a piece for each token, in evaluation mode.
        vocab: its pieces.
        context: most tokens that it reads at once.
        twin: the model in torch, for `trace` and `edited`; None = there is none.
    """

    def __init__(
        self, model: Decodable, vocab: Vocab, *, context: int, twin: Twin | None = None
    ) -> None:
        self.model = model
        self.twin = twin
        self.vocab = vocab
        self.context = context

    def fill(self, text: str, count: int = 5) -> list[list[Filling]]:
        """The most probable pieces for each gap, most probable first.

        The gaps are predicted independently of each other: the best words of two gaps may not fit
        together.

        Args:
            text: one line with `<mask>` for each gap.
            count: pieces for each gap; fewer if there are no more.

        Raises:
            UsageError: there is no `<mask>`, the text is too long, or an argument is of a wrong
                type or out of range.
        """
        require_whole(count, "count", 1)
        ids = self._ids(text)
        gaps = [place for place, id_ in enumerate(ids) if id_ == self.vocab.mask_id]
        if not gaps:
            raise UsageError(f"the text must have a {MASK} to fill, but is {text!r:.60}.")
        nothing = np.zeros((1, 0), dtype=np.int64)
        log_probs = self.model.teacher_forced(np.array([ids]), nothing).all_log_probs()[gaps]
        controls = np.array(sorted(self.vocab.control_ids))
        log_probs[:, controls] = -np.inf
        count = min(int(count), self.vocab.size - len(controls))
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :count]
        return [
            [self._filling(id_, float(np.exp(row[id_]))) for id_ in ids_of_gap]
            for row, ids_of_gap in zip(log_probs, best.tolist(), strict=True)
        ]

    def trace(self, text: str) -> "Trace":
        """Every named tensor of a text, recorded from the model in torch.

        Args:
            text: one line, with or without `<mask>`; `log_probs` has a row for each of
                `source_tokens`.

        Raises:
            UsageError: the text is too long, or not a string.
            MissingExtraError: torch is not installed.
        """
        model, ids = traceable(self.twin), self._ids(text)
        from heed.translate.tracer import Tracer

        return Tracer(model, self.vocab, self.vocab).read(text, ids)

    def _ids(self, text: str) -> list[int]:
        """The ids of a text with gaps; a gap replaces a word and the blank before it."""
        require_text(text=text)
        first, *rest = normalize(text).split(MASK)
        ids = self.vocab.encode(first.removesuffix(" ")) if first else []
        for part in rest:
            ids.append(self.vocab.mask_id)
            # After a gap the text continues without a leading blank.
            (more,) = stream_ids(self.vocab, [part.removesuffix(" ") or part])
            ids += more if part != " " else []
        if len(ids) >= self.context:
            raise UsageError(
                f"the text has {len(ids) + 1} pieces, but this model reads {self.context} at once. "
                "Shorten it."
            )
        return [*ids, self.vocab.eos_id]

    def _filling(self, id_: int, probability: float) -> Filling:
        (piece,) = self.vocab.pieces([id_])
        word = piece.replace(BLANK_SIGN, " ").strip() or piece
        continues_word = not self.vocab.begins_word[id_]
        return Filling(word=word, probability=probability, continues_word=bool(continues_word))
