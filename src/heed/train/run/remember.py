"""Whether the training pairs help a model to translate sentences that are like one of them.

A run asks this at its end, and stores them if so. `heed.text.memory` finds similar pairs,
`heed.decode.guided` uses them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from heed.data.prepared import Prepared
from heed.data.readers import Pair
from heed.evaluate.counts import count_bleu, count_chrf, reading_here
from heed.text.capitals import is_in_capitals
from heed.text.memory import BONUSES, MOST_PAIRS, TranslationMemory
from heed.train.epochs.slots import with_slots
from heed.train.run.calibrate import load_quickly
from heed.train.step.trainer import EpochPairs
from heed.train.tasks.translation import MOST_TRIED, n_tried_after
from heed.translate.given import without_memories
from heed.translate.lines import Line, LineReader
from heed.translate.remember import pair_ids
from heed.translate.translator import Translator

LEAST_TRIED = 20
"""Development sentences that must be like a training pair, to tell whether pairs help."""

LEAST_GAIN = 0.5
"""Least gain of chrF2 on these sentences for which the pairs are stored."""


Scores = tuple[float, float]
"""BLEU and chrF2, 0 to 100."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What a memory does for development sentences that are like one of its pairs.

    Attributes:
        n_sentences: number of these sentences.
        n_read: number of all sentences that were looked up to find these.
        without: their scores by the model alone.
        guided: bonus → their scores with the memory.
    """

    n_sentences: int
    n_read: int
    without: Scores
    guided: dict[float, Scores]

    @property
    def best(self) -> float | None:
        """The bonus with the best chrF2; None if the gain is too small, or BLEU falls."""
        bleu, chrf = self.without
        gains = {
            bonus: new_chrf
            for bonus, (new_bleu, new_chrf) in self.guided.items()
            if new_chrf >= chrf + LEAST_GAIN and new_bleu >= bleu
        }
        return max(gains, key=gains.__getitem__, default=None)


def helpful_memory(
    model: Path, data: Prepared, threads: int | None = None, time_s: float | None = None
) -> tuple[TranslationMemory | None, str]:
    """The training pairs as a memory, if they help a model.

    Args:
        model: its folder.
        data: its corpus.
        threads: CPU threads; None = as many as there are cores.
        time_s: the time budget of the run; after a short one fewer sentences are tried.

    Returns:
        The memory, or None, and what was found, as a sentence; "" if there are too few similar
        development sentences to tell.
    """
    translator = load_quickly(model, threads)
    memory = memory_of(data, translator.reader)
    found = try_memory(translator, memory, data.dev, n_tried_after(time_s))
    if found is None:
        return None, ""
    share = f"{found.n_sentences:,} of {found.n_read:,} development sentences"
    if found.best is None:
        return None, f"The training pairs do not help to translate the {share} that are like one."
    scores = zip(("BLEU", "chrF2"), found.without, found.guided[found.best], strict=True)
    gains = " and ".join(f"{name} from {old:.1f} to {new:.1f}" for name, old, new in scores)
    return memory.with_bonus(found.best), (
        f"{len(memory):,} training pairs are stored as its memory: they raise {gains} for {share}."
    )


def memory_of(data: Prepared, reader: LineReader) -> TranslationMemory:
    """The first `MOST_PAIRS` real training pairs, with slots for their common spans.

    Of several translations of a source it holds the most frequent one.

    Args:
        data: the corpus.
        reader: of the model; pairs in capitals are stored as it reads them.
    """
    pairs = with_slots(data.train, data.src_vocab, data.tgt_vocab)
    numbers = range(min(data.n_real, MOST_PAIRS))
    in_capitals = _read_in_capitals(data, pairs, numbers, reader)
    translations: dict[tuple[int, ...], Counter[tuple[int, ...]]] = {}
    for number in numbers:
        if number not in in_capitals:
            src, tgt = (tuple(side(number).tolist()) for side in (pairs.src, pairs.tgt))
            translations.setdefault(src, Counter())[tgt] += 1
    usual = ((src, found.most_common(1)[0][0]) for src, found in translations.items())
    # A source in usual case goes before the same one in capitals.
    stored: Iterable[tuple[Sequence[int], Sequence[int]]] = chain(in_capitals.values(), usual)
    return TranslationMemory.of(stored, (data.src_vocab.size, data.tgt_vocab.size))


def _read_in_capitals(
    data: Prepared, pairs: EpochPairs, numbers: Iterable[int], reader: LineReader
) -> dict[int, tuple[list[int], list[int]]]:
    """The ids of the pairs in capitals, as a model reads and writes them: in small letters.

    Args:
        data: the corpus.
        pairs: its pairs with slots, whose letters do not count.
        numbers: of the pairs to read.
        reader: of the model.
    """
    src_vocab, tgt_vocab, reader = data.src_vocab, data.tgt_vocab, without_memories(reader)
    is_small = np.array([_is_small(piece) for piece in src_vocab.pieces(range(src_vocab.size))])
    found = {}
    for number in numbers:
        src = pairs.src(number)
        # Decoding takes ten times as long as looking at the pieces.
        if is_small[src].any() or not is_in_capitals(src_vocab.decode(src)):
            continue
        src, tgt = data.train.src(number), data.train.tgt(number)
        tag = [id for id in src[:1].tolist() if src_vocab.is_control(id)]
        src_ids, tgt_ids, is_lowered = pair_ids(
            reader, src_vocab.decode(src), tgt_vocab.decode(tgt), tag
        )
        if is_lowered:
            found[number] = src_ids, tgt_ids
    return found


def _is_small(piece: str) -> bool:
    """Whether a piece has a small letter; bytes and control pieces are spelled `<…>`."""
    return piece != piece.upper() and not piece.startswith("<")


def try_memory(
    translator: Translator, memory: TranslationMemory, dev: list[Pair], most: int = MOST_TRIED
) -> Trial | None:
    """Translate development sentences that are like a pair, with and without the memory.

    Args:
        translator: of the model; its memories are replaced.
        memory: the pairs.
        dev: development pairs, of which so many are read as are needed.
        most: sentences to translate.

    Returns:
        The scores; None if there are fewer than `LEAST_TRIED` such sentences.
    """
    reader = translator.reader
    reader.memories, n_read = (memory,), 0
    tried: list[tuple[Line, str]] = []
    for pair in dev[: 4 * most]:
        n_read += 1
        line = reader.line(pair.src, pair.target_lang)
        if any(part.guide for part in reader.parts(line, 0, reader.tag(None))):
            tried.append((line, pair.tgt))
        if len(tried) == most:
            break
    if len(tried) < LEAST_TRIED:
        return None
    guided = {}
    for bonus in BONUSES:
        reader.memories = (memory.with_bonus(bonus),)
        guided[bonus] = _scores(translator, tried)
    reader.memories = ()
    without = _scores(translator, tried)
    return Trial(n_sentences=len(tried), n_read=n_read, without=without, guided=guided)


def _scores(translator: Translator, tried: list[tuple[Line, str]]) -> Scores:
    """BLEU and chrF2 of greedy translations."""
    found = translator.translate([line for line, _ in tried], beam_size=1)
    hypotheses, references = [each.text for each in found], [[tgt for _, tgt in tried]]
    reading = reading_here("" if translator.reader.target_langs else translator.target_lang)
    bleu, chrf = (count(hypotheses, references, reading) for count in (count_bleu, count_chrf))
    return bleu.of(), chrf.of()
