"""Run the search of a sentence as in translation, and record it."""

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from heed.decode.early_stopping import EARLY_STOPPING, Standing
from heed.decode.guided import Guide
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions, options_from
from heed.decode.state import Step
from heed.errors import DataError
from heed.explain.decoding.observe import Distributions, Recorder, strategy_of
from heed.explain.decoding.record import (
    STOPS,
    Candidate,
    Finished,
    SearchRecord,
    SearchStep,
    Stop,
    ranking_formula,
)
from heed.explain.decoding.tree import tree_lines
from heed.text.vocab import Vocab
from heed.translate.arguments import require_text
from heed.translate.lines import require_room
from heed.translate.parts import Chunk
from heed.translate.protect import text_of
from heed.translate.source import Source
from heed.translate.translator import Translator
from heed.translate.whole import read_pieces, read_whole, required, written_pieces

MAX_BYTES = 64 << 20
"""Limit for the kept distributions of a search; others are computed again when needed."""

OnProgress = Callable[[], None]
"""Called after each step of a search; may raise to end it."""


class RecordedSearch:
    """A search and its distributions.

    Args:
        translator: the translator.
        chunk: the sentence.
        options: options of the search.
        max_bytes: limit for the distributions kept at a time.
        on_progress: called after each step of the search; may raise to end it.

    Attributes:
        record: the record of the search.
    """

    def __init__(
        self,
        translator: Translator,
        chunk: Chunk,
        options: DecodeOptions,
        max_bytes: int,
        on_progress: OnProgress,
    ) -> None:
        self._translator, self._chunk, self._options = translator, chunk, options
        self._max_bytes = max_bytes
        recorder = self._run(0, on_progress)
        self._kept = recorder.distributions
        self.record = _assemble(translator, chunk, options, recorder)

    def _repr_html_(self) -> str:
        """The tree as text, for notebooks."""
        return f"<pre>{html.escape(chr(10).join(tree_lines(self.record, is_colored=False)))}</pre>"

    def kept(self, number: int) -> Distributions | None:
        """The distributions of `at`, if they are in memory."""
        return self._kept.get(number)

    def at(self, number: int, *, on_progress: OnProgress = lambda: None) -> Distributions:
        """The distributions of the next token of every live hypothesis at one step.

        Args:
            number: the step's number.
            on_progress: called after each step of a search, if it is repeated; may raise to end it.

        Raises:
            DataError: there is no such step.
        """
        n_steps = len(self.record.steps)
        if not 0 <= number < n_steps:
            raise DataError(f"The step must lie between 0 and {n_steps - 1}, but is {number}.")
        kept = self._kept
        if number not in kept:
            # A search is deterministic: a second run yields the same distributions.
            self._kept = kept = self._run(number, on_progress).distributions
        return kept[number]

    def _run(self, keep_from: int, on_progress: OnProgress) -> Recorder:
        recorder = Recorder(
            self._translator.tgt_vocab,
            self._options,
            key=self._chunk.key,
            keep_from=keep_from,
            max_bytes=self._max_bytes,
            line=self._chunk.source,
        )

        def observe(step: Step) -> None:
            recorder(step)
            on_progress()

        self._translator.searcher.decode([self._chunk], self._options, observer=observe)
        return recorder


def record_search(
    translator: Translator,
    text: str,
    *,
    prefix: str = "",
    prefix_ids: Sequence[int] | None = None,
    target_lang: str | None = None,
    use_memory: bool = True,
    max_bytes: int = MAX_BYTES,
    on_progress: OnProgress = lambda: None,
    **options: Any,
) -> RecordedSearch:
    """Translate a sentence and record every step of the search.

    Args:
        translator: a translator with any runtime.
        text: one sentence; it is read in one piece, even if `translate` would split it.
        prefix: the required beginning of the translation.
        prefix_ids: the same as ids, instead of `prefix`.
        target_lang: one of the model's target languages.
        use_memory: let the translator's memory guide the search; False = the model alone.
        max_bytes: limit for the distributions kept at a time.
        on_progress: called after each step of the search; may raise to end it.
        **options: fields of `DecodeOptions`. When sampling, the first sample is recorded.

    Raises:
        ConfigError: an option or language is unknown, or a value is out of range.
        DataError: the text is blank, or too long to be read in one piece; a prefix has an id that
            is not in the vocabulary, or leaves no room below `max_length`.
        UsageError: the text or the prefix is not a string.
    """
    require_text(text=text, prefix=prefix)
    chosen = options_from(translator.options, options)
    if chosen.sample:
        chosen = replace(chosen, n_best=1)
    if not text.strip():
        raise DataError("The text must be a sentence, but is blank.")
    reader = translator.reader
    tag = reader.tag(target_lang)
    chunk = required(reader, read_whole(reader, text, tag, prefix), tag, "prefix")
    if prefix_ids is not None:
        chunk = replace(chunk, prefix=_checked(prefix_ids, translator.tgt_vocab, chunk))
    if not use_memory:
        chunk = replace(chunk, guide=None, match=None)
    require_room([chunk], 0, chosen.max_length)
    return RecordedSearch(translator, chunk, chosen, max_bytes, on_progress)


def _checked(ids: Sequence[int], vocab: Vocab, chunk: Chunk) -> list[int]:
    spans = () if chunk.source is None else chunk.source.spans
    slots = {span.slots[1] for span in spans if span.slots is not None}
    for each in ids:
        if not 0 <= each < vocab.size or (vocab.is_control(each) and each not in slots):
            raise DataError(
                f"prefix_ids must hold ids of pieces of text, below {vocab.size}, but holds {each}."
            )
    return list(ids)


def _assemble(
    translator: Translator, chunk: Chunk, options: DecodeOptions, recorder: Recorder
) -> SearchRecord:
    """The record of a finished search."""
    vocab = translator.tgt_vocab
    stop = _stop(recorder, options, chunk.guide)
    steps = _with_last_fates(recorder.steps, stop, options)
    finished = _finished(steps, vocab, options, chunk.source)
    return SearchRecord(
        strategy=strategy_of(options),
        options=asdict(options),
        source_tokens=read_pieces(translator.src_vocab, chunk.src_ids, chunk.source),
        root=vocab.pieces([vocab.bos_id])[0],
        prefix=list(chunk.prefix),
        prefix_tokens=written_pieces(vocab, chunk.prefix, chunk.source),
        match=chunk.match,
        limit=recorder.limit,
        steps=steps,
        finished=finished,
        stop=stop,
        vocab_size=recorder.vocab_size,
    )


def _stop(recorder: Recorder, options: DecodeOptions, guide: Guide | None) -> Stop:
    """The reason for the end of a search, by the search's own stopping rule."""
    steps, limit = recorder.steps, recorder.limit
    last = steps[-1]
    ended = [each.score for step in steps for each in step.candidates if each.fate == "ended"]
    live = [each.total for each in last.candidates if each.fate == "kept"]
    if options.sample or options.beam_size == 1:
        reason = "eos" if ended else "max_length"
        return Stop(reason=reason, sentence=f"{STOPS[reason]} after {len(steps)} tokens")
    if last.number + 1 == limit:
        return Stop(reason="max_length", sentence=f"{STOPS['max_length']}: {limit} tokens")
    if not live:
        return Stop(reason="no_live", sentence=STOPS["no_live"])
    ended.sort(reverse=True)
    standing = Standing(
        n_ended=len(ended),
        beam_size=options.beam_size,
        best_live=max(live),
        divisors=_divisor(limit, options),
        worst_kept=ended[options.n_best - 1] if len(ended) >= options.n_best else -math.inf,
    )
    # A search with a strong guide has a rule of its own.
    rule = "bound" if guide is not None and guide.is_strong else options.early_stopping
    assert EARLY_STOPPING[rule](standing), "a search stops by its rule"
    if rule == "first":
        numbers = f"{standing.n_ended} for a beam of {standing.beam_size}"
    else:
        numbers = (
            f"{standing.best_live:.4f} / {standing.divisors:.4f} = "
            f"{standing.best_live / standing.divisors:.4f} is at most {standing.worst_kept:.4f}"
        )
    return Stop(reason=rule, sentence=f"{STOPS[rule]}: {numbers}".replace("-", "−"))


def _with_last_fates(
    steps: list[SearchStep], stop: Stop, options: DecodeOptions
) -> list[SearchStep]:
    """The steps, with the final fates of the hypotheses that were live at the end."""
    is_cut = stop.reason == "max_length"

    def final(each: Candidate) -> Candidate:
        if each.fate != "kept":
            return each
        if is_cut:
            return replace(each, fate="cut", slot=None)
        return replace(each, fate="pruned", reason="stopped", slot=None)

    *before, last = steps
    return [*before, replace(last, candidates=[final(each) for each in last.candidates])]


def _finished(
    steps: list[SearchStep], vocab: Vocab, options: DecodeOptions, line: Source | None
) -> list[Finished]:
    """All ended hypotheses, in the order of their ranks."""
    over = [
        (step.number, place)
        for step in steps
        for place, each in enumerate(step.candidates)
        if each.fate in ("ended", "cut")
    ]
    first = steps[0].number
    found = [_one(steps, number - first, place, vocab, options, line) for number, place in over]
    found.sort(key=lambda answer: (answer.status != "eos", -answer.score))
    n_answers = options.n_best
    return [replace(each, is_answer=rank < n_answers) for rank, each in enumerate(found)]


def _one(
    steps: list[SearchStep],
    index: int,
    place: int,
    vocab: Vocab,
    options: DecodeOptions,
    line: Source | None,
) -> Finished:
    last = steps[index].candidates[place]
    path = path_to(steps, index, place)
    ids = [each.id for each in path]
    ids = ids[:-1] if last.fate == "ended" else ids
    length = index + 1
    divisor = steps[index].divisor
    token_log_probs = [each.log_prob for each in path]
    return Finished(
        step=steps[index].number,
        candidate=place,
        ids=ids,
        pieces=written_pieces(vocab, ids, line),
        text=text_of(ids, vocab, line),
        token_log_probs=token_log_probs,
        log_prob=math.fsum(token_log_probs),
        total=last.total,
        length=length,
        divisor=divisor,
        score=last.score,
        formula=ranking_formula(
            last.total,
            length,
            divisor,
            formula=options.length_formula,
            alpha=options.length_penalty,
        ),
        status="eos" if last.fate == "ended" else "max_length",
        is_answer=False,
    )


def path_to(steps: Sequence[SearchStep], index: int, place: int) -> list[Candidate]:
    """The candidates on the path to one, itself last.

    Args:
        steps: the steps of a record.
        index: the candidate's step.
        place: its index among the candidates of that step.
    """
    path: list[Candidate] = []
    at: int | None = place
    for step in reversed(steps[: index + 1]):
        assert at is not None, "only the first step continues the empty hypothesis"
        path.append(step.candidates[at])
        at = next(row.candidate for row in step.rows if row.slot == path[-1].parent)
    return path[::-1]


def _divisor(length: int, options: DecodeOptions) -> float:
    divisor: float = LENGTH_FORMULAS[options.length_formula](length, options.length_penalty)
    return divisor
