"""A classifier: the label of each text, with the probabilities of all labels."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from heed.decode.batching import padded
from heed.model.families import family_of
from heed.model.interface import Decodable, Floats
from heed.text.normalize import normalize
from heed.text.vocab import N_SPECIAL, Vocab
from heed.translate.arguments import require_text, texts_of
from heed.translate.twin import Twin, open_with_twin, traceable

if TYPE_CHECKING:
    from heed.translate.trace import Trace

ROWS = 64
"""Texts computed at once."""


@dataclass(frozen=True, kw_only=True)
class Classified:
    """The label of a text.

    Attributes:
        label: the most probable one.
        probabilities: of each label.
        is_cut: the end of the text was not read.
    """

    label: str
    probabilities: dict[str, float]
    is_cut: bool = False


def load_classifier(
    folder: str | Path, *, device: str = "auto", dtype: str = "auto", threads: int | None = None
) -> "Classifier":
    """Open a model that was trained with `--task classify`.

    Args:
        folder: a model or run folder.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: the type to compute in.
        threads: CPU threads; None = as many as there are cores.

    Raises:
        FormatError: the folder is not a model, or damaged.
        ConfigError: it has another task, or device and `dtype` do not go together.
    """
    found = open_with_twin(folder, device=device, dtype=dtype, threads=threads, task="classify")
    return Classifier(
        found.model,
        found.bundle.src_vocab,
        labels=found.bundle.labels,
        context=found.options.max_length,
        marks_words=family_of(found.bundle.config).marks_words,
        twin=found.twin,
    )


class Classifier:
    """A model, its vocabulary and its labels.

    Args:
        model: predicts one label for a text, in evaluation mode.
        vocab: its pieces.
        labels: in the order of their ids.
        context: most tokens that it reads; the end of a longer text is not read
            (`Classified.is_cut`).
        marks_words: the model reads `<bos>` in front of each word.
        twin: the model in torch, for `trace` and `edited`; None = there is none.
    """

    def __init__(
        self,
        model: Decodable,
        vocab: Vocab,
        *,
        labels: Sequence[str],
        context: int,
        marks_words: bool = False,
        twin: Twin | None = None,
    ) -> None:
        self.model = model
        self.twin = twin
        self.vocab = vocab
        self.labels = list(labels)
        self.context = context
        self.marks_words = marks_words

    def __call__(self, texts: Iterable[str]) -> list[Classified]:
        """Label each text.

        Raises:
            UsageError: `texts` is not a list of texts.
        """
        return list(self.stream(list(texts_of(texts, "texts"))))

    def stream(self, texts: Iterable[str]) -> Iterator[Classified]:
        """Label the texts of a stream, a block at a time."""
        waiting = iter(texts)
        while block := list(islice(waiting, ROWS)):
            yield from self._block(block)

    def trace(self, text: str) -> "Trace":
        """Every named tensor of a text, recorded from the model in torch, with `labels`.

        Raises:
            UsageError: `text` is not a string.
            MissingExtraError: torch is not installed.
        """
        require_text(text=text)
        model = traceable(self.twin)
        from heed.translate.tracer import Tracer

        (ids,), is_cut = self._ids([text])
        trace = Tracer(model, self.vocab, self.vocab).read(text, ids)
        (found,) = self._labeled(trace["log_probs"].reshape(1, -1), is_cut)
        return replace(trace, labels=found.probabilities)

    def _block(self, texts: list[str]) -> list[Classified]:
        ids, are_cut = self._ids(texts)
        src = padded(ids, self.vocab.pad_id)
        nothing = np.zeros((len(ids), 0), dtype=np.int64)
        log_probs = self.model.teacher_forced(src, nothing).all_log_probs()
        return self._labeled(log_probs, are_cut)

    def _ids(self, texts: list[str]) -> tuple[list[list[int]], list[bool]]:
        """The ids of the beginning of each text, and whether there is more of it."""
        most = self.context - 1
        whole = list(self.vocab.encode_all(map(normalize, texts)))
        rows = [row[:most] for row in whole]
        if self.marks_words:
            rows = [self.vocab.with_words_marked(np.array(row)).tolist() for row in rows]
        return [[*row, self.vocab.eos_id] for row in rows], [len(row) > most for row in whole]

    def _labeled(self, log_probs: Floats, are_cut: list[bool]) -> list[Classified]:
        """The labels of outputs `(n_texts, n_outputs)`; the first outputs are special pieces."""
        log_probs = log_probs[:, N_SPECIAL:]
        shares = np.exp(log_probs - log_probs.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return [
            Classified(
                label=self.labels[int(row.argmax())],
                probabilities=dict(zip(self.labels, map(float, row), strict=True)),
                is_cut=is_cut,
            )
            for row, is_cut in zip(shares, are_cut, strict=True)
        ]
