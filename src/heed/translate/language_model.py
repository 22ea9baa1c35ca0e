"""A language model: continues a text, and computes the probability of a text."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heed.decode.batching import padded
from heed.decode.options import DecodeOptions, options_from
from heed.decode.score import score_pairs
from heed.decode.search import decode
from heed.errors import ConfigError, DataError, UsageError
from heed.model.interface import Decodable
from heed.text.stream import stream_ids, stream_text
from heed.text.vocab import Vocab
from heed.translate.arguments import require_text, texts_of
from heed.translate.twin import Twin, open_with_twin, traceable

if TYPE_CHECKING:
    from heed.translate.trace import Trace

ROWS = 32
"""Windows or prompts computed at once."""

MAX_NEW_TOKENS = 1_000_000
"""Most tokens of one continuation."""

_NOT_USED = {
    *("beam_size", "n_best", "length_penalty", "length_formula", "early_stopping"),
    *("max_length", "max_length_factor", "max_length_offset", "min_length"),
}
"""Fields of `DecodeOptions` for texts that end, which running text does not."""


@dataclass(frozen=True, kw_only=True)
class TextScore:
    """The score of a text under a model.

    Attributes:
        n_tokens: tokens of the text.
        n_characters: its characters.
        nll: negative log-likelihood of the whole text, in nats.
    """

    n_tokens: int
    n_characters: int
    nll: float

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nll / max(1, self.n_tokens)

    @property
    def perplexity(self) -> float:
        """e to the nats a token: the number of equally likely tokens to choose from."""
        return math.exp(self.loss)

    @property
    def bits(self) -> float:
        """Bits a character, which does not depend on the vocabulary."""
        return self.nll / max(1, self.n_characters) / math.log(2)


def load_language_model(
    folder: str | Path, *, device: str = "auto", dtype: str = "auto", threads: int | None = None
) -> "LanguageModel":
    """Open a model that was trained with `--task lm`.

    Args:
        folder: a model or run folder.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: the type to compute in.
        threads: CPU threads; None = as many as there are cores.

    Raises:
        FormatError: the folder is not a model, or damaged.
        ConfigError: it has another task, or device and `dtype` do not go together.
    """
    found = open_with_twin(folder, device=device, dtype=dtype, threads=threads, task="lm")
    return LanguageModel(
        found.model, found.bundle.tgt_vocab, options=found.options, twin=found.twin
    )


class LanguageModel:
    """A model and its vocabulary.

    Args:
        model: anything that can be decoded, in evaluation mode.
        vocab: its pieces.
        options: default decoding options; `max_length` is the most tokens it reads at once.
        twin: the model in torch, for `trace` and `edited`; None = there is none.
    """

    def __init__(
        self,
        model: Decodable,
        vocab: Vocab,
        *,
        options: DecodeOptions,
        twin: Twin | None = None,
    ) -> None:
        self.model = model
        self.twin = twin
        self.vocab = vocab
        self.options = replace(options, beam_size=1, n_best=1)
        self.context = options.max_length

    def generate(self, prompts: Iterable[str], *, length: int = 200, **options: Any) -> list[str]:
        """Continue each prompt.

        When the context is full, the text continues from the latest half of it. So of a prompt that
        fills the context, only that much is read (`reads_whole`).

        Args:
            prompts: texts to continue; may be empty texts.
            length: tokens to add to each.
            **options: `sample` and the fields of `DecodeOptions` that sampling uses; `suppress`,
                `no_repeat_ngram_size` and `repetition_penalty`. Without `sample` the most probable
                token is taken each time.

        Returns:
            The continuations, without their prompts. Each depends only on its own prompt and its
            index in the list. One is shorter if the options leave no token to continue with.

        Raises:
            UsageError: `prompts` is not a list of texts, or `length` is out of range.
            ConfigError: an option does not exist or its value is out of range.
        """
        prompts = list(texts_of(prompts, "prompts"))
        if type(length) is not int or not 1 <= length <= MAX_NEW_TOKENS:
            raise UsageError(f"length must be from 1 to {MAX_NEW_TOKENS:,}, but is {length!r}.")
        if unused := sorted(_NOT_USED & options.keys()):
            raise ConfigError(f"{unused[0]} has no effect on running text: leave it out.")
        chosen = options_from(self.options, options)
        rows = stream_ids(self.vocab, prompts)
        found: list[list[int]] = []
        for start in range(0, len(rows), ROWS):
            keys = range(start, min(start + ROWS, len(rows)))
            found += self._continued([rows[key] for key in keys], keys, length, chosen)
        return [
            stream_text(self.vocab, [*row, *ids])[len(prompt) :]
            for prompt, row, ids in zip(prompts, rows, found, strict=True)
        ]

    def trace(
        self, prompt: str, continuation: str | None = None, *, length: int = 20, **options: Any
    ) -> "Trace":
        """Every named tensor of a text, recorded from the model in torch.

        Args:
            prompt: the beginning; may be empty.
            continuation: the rest, `translation` of the trace; None = the model generates it.
            length: tokens to generate then.
            **options: fields of `DecodeOptions`, for the continuation.

        Raises:
            UsageError: they are not strings, both are empty, or they are longer than the model
                reads at once.
            MissingExtraError: torch is not installed.
        """
        require_text(prompt=prompt, continuation="" if continuation is None else continuation)
        model = traceable(self.twin)
        from heed.translate.tracer import Tracer

        if continuation is None:
            (continuation,) = self.generate([prompt], length=length, **options)
        given, ids = stream_ids(self.vocab, [prompt, prompt + continuation])
        if not 1 <= len(ids) <= self.context:
            raise UsageError(
                f"prompt and continuation must have from 1 to {self.context} pieces, as many as "
                f"this model reads at once, but have {len(ids)}."
            )
        # The last piece of a prompt may extend into the continuation.
        pairs = zip(given, ids, strict=False)
        n_prompt = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        tracer = Tracer(model, self.vocab, self.vocab, has_source=False)
        return tracer.continued(prompt, continuation, ids, n_prompt)

    def reads_whole(self, prompt: str) -> bool:
        """Whether `generate` reads all of a prompt, before it continues it."""
        (ids,) = stream_ids(self.vocab, [prompt])
        return len(ids) < self._most_at_once

    @property
    def _most_at_once(self) -> int:
        """Most tokens of a prompt and what is added to it, until the latest half is read anew."""
        limit = self.model.length_limit  # `<bos>` counts there
        return self.context if limit is None else min(self.context, limit - 1)

    def _continued(
        self, rows: list[list[int]], keys: Iterable[int], length: int, options: DecodeOptions
    ) -> list[list[int]]:
        """The new ids of each row, a part of a context at a time."""
        most = self._most_at_once
        found: list[list[int]] = [[] for _ in rows]
        keys, part, live = list(keys), 0, list(range(len(rows)))
        while live:
            texts = [[*rows[i], *found[i]] for i in live]
            prefixes = [ids if len(ids) < most else ids[len(ids) - most // 2 :] for ids in texts]
            wanted = [
                min(length - len(found[i]), most - len(prefix))
                for i, prefix in zip(live, prefixes, strict=True)
            ]
            n_most = min(max(map(len, prefixes)) + max(wanted), most)
            answers = decode(
                self.model,
                np.zeros((len(live), 0), dtype=np.int64),
                replace(
                    options,
                    # Running text has no end, so the limit of each row is its prefix and what any
                    # row wants; what a row itself does not want is dropped.
                    max_length=n_most,
                    max_length_factor=0.0,
                    max_length_offset=float(max(wanted)),
                    min_length=n_most - 1,
                    seed=(options.seed + part) % 2**64,
                    suppress=(*options.suppress, self.vocab.eos_id),
                ),
                bos_id=self.vocab.bos_id,
                eos_id=self.vocab.eos_id,
                pad_id=self.vocab.pad_id,
                forbidden=self.vocab.control_ids,
                prefixes=prefixes,
                score_prefixes=False,
                keys=[keys[i] for i in live],
            )
            going_on = []
            for i, prefix, n, (answer,) in zip(live, prefixes, wanted, answers, strict=True):
                new = answer.ids[len(prefix) : len(prefix) + n]
                found[i] += new
                # With fewer new tokens than wanted, no token was allowed any more.
                if len(new) == n and len(found[i]) < length:
                    going_on.append(i)
            live, part = going_on, part + 1
        return found

    def score(self, text: str) -> TextScore:
        """Log-probability of a text, read in windows of the context, as in training.

        Args:
            text: running text; it is read as after a line break.

        Raises:
            DataError: it is empty.
            UsageError: it is not a string.
        """
        require_text(text=text)
        (ids,) = stream_ids(self.vocab, [text])
        if not ids:
            raise DataError("there must be text to score, but it is empty.")
        windows = [ids[i : i + self.context] for i in range(0, len(ids), self.context)]
        nll = 0.0
        for start in range(0, len(windows), ROWS):
            rows = windows[start : start + ROWS]
            log_probs = score_pairs(
                self.model,
                np.zeros((len(rows), 0), dtype=np.int64),
                padded([[self.vocab.bos_id, *row[:-1]] for row in rows], self.vocab.pad_id),
                padded(rows, self.vocab.pad_id),
                pad_id=self.vocab.pad_id,
            )
            nll -= sum(
                float(of_row[: len(row)].sum()) for of_row, row in zip(log_probs, rows, strict=True)
            )
        return TextScore(n_tokens=len(ids), n_characters=len(text), nll=nll)
