"""`Judge`: doubts about translations, and the confidence that they are right.

Rules find loops and wrong numbers and scripts. Regressions learned on development pairs find text
that is left out, added or in another language (`calibrate.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields

import numpy as np

from heed.bundle.bundle import Bundle
from heed.bundle.doubts import Judgment
from heed.bundle.find import DOUBT_WORDS, DOUBTS
from heed.errors import FormatError
from heed.text.piece_words import in_whole_words
from heed.text.protection.fields import fields_in_turn
from heed.text.vocab import Vocab
from heed.translate.doubts.features import NAMES, Measured, measure
from heed.translate.doubts.fit import chances, sums
from heed.translate.doubts.loops import find_loops
from heed.translate.doubts.numbers import different_numbers
from heed.translate.doubts.scripts import is_in_foreign_script, is_untranslated
from heed.translate.doubts.spelling import spelled, unknown_characters
from heed.translate.doubts.unseen import is_of_unseen_words
from heed.translate.doubts.words import N_VALUES, Words
from heed.translate.result import Doubt, Translation, difference
from heed.translate.words import piece_spans

REMARKS = frozenset({"split", "low_probability", "repaired", "span_repeated", "read_as"})
"""Kinds that alone do not make a line doubtful."""

NOT_OF_PAIRS = REMARKS | {"unknown_word"}
"""Kinds that say something about the model or its search, not about a given pair."""

LOW_SCORE = -4.0
"""A lower mean log-probability is doubtful where nothing was learned on development pairs."""

LENGTHS = (3.0, 12)
"""A side that has more than so many times as many tokens as the other, and so many more."""

SENTENCES = {
    "left_out": "Part of the source seems to be missing",
    "added": "Something seems to have been added",
    "wrong_language": "The translation seems to be in another language.",
    "source_language": "The source seems to be in another language than the model reads.",
}
"""What is said about the kinds that regressions find."""


def is_doubtful(found: Translation) -> bool:
    """Whether a translation has a doubt that is more than a remark."""
    return any(doubt.kind not in REMARKS for doubt in found.doubts)


def doubts_of_pair(source: str, target: str, judged: Translation) -> list[Doubt]:
    """What is doubtful about a given pair; nothing if both sides are blank.

    Args:
        source: its source.
        target: its translation.
        judged: the result of `Translator.judged` for the two.
    """
    if bool(source.strip()) != bool(target.strip()):
        side = "translation" if source.strip() else "source"
        return [Doubt(kind="empty", sentence=f"The {side} is empty.")]
    return [doubt for doubt in judged.doubts if doubt.kind not in NOT_OF_PAIRS]


class Judge:
    """Adds doubts and confidence to translations.

    Args:
        judgment: the learned regressions of the model; None = rules only.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        source_lang: code of the language of the sources; "" = unknown.
        target_lang: code of the language of the translations; "" = unknown.
    """

    def __init__(
        self,
        judgment: Judgment | None,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        source_lang: str = "",
        target_lang: str = "",
    ) -> None:
        self.judgment = judgment
        self.languages = source_lang, target_lang
        self._known = src_vocab.known_words
        self._words = None
        if judgment is not None and judgment.words:
            self._words = Words(judgment.words, src_vocab, tgt_vocab)

    @property
    def is_learned(self) -> bool:
        """Whether it has learned regressions besides the rules."""
        return self._words is not None

    def judge(
        self,
        found: Sequence[Translation],
        sources: Sequence[str | None] = (),
        *,
        own: Sequence[Translation] | None = None,
    ) -> list[Translation]:
        """The same translations with their doubts and their confidence.

        Args:
            found: translations with their pieces; blank, unwanted and intentionally copied ones
                stay as they are.
            sources: the text of each source, if its pieces do not spell it.
            own: for given translations that the model only scored: the model's own translations
                of the sources, one each, if it has learned regressions.
        """
        is_given = own is not None
        places = [
            place
            for place, each in enumerate(found)
            if each.status not in ("empty", "unwanted") and each.source_tokens != [each.text]
        ]
        beside = [own[place] for place in places] if own else None
        learned, confidences = self._learned([found[place] for place in places], is_given, beside)
        judged = list(found)
        for number, place in enumerate(places):
            source = (sources[place] if sources else None) or spelled(found[place].source_tokens)
            doubts = [
                *self._by_rules(source, found[place]),
                *learned[number],
                *self._about_source(source, learned[number]),
                *self._about_confidence(found[place], confidences[number], is_given),
            ]
            if doubts or confidences[number] is not None:
                judged[place] = _with(found[place], doubts, confidences[number])
        return judged

    def _learned(
        self, found: Sequence[Translation], is_given: bool, own: Sequence[Translation] | None
    ) -> tuple[list[list[Doubt]], list[float | None]]:
        """Doubts by regressions, and the confidence of each."""
        if self._words is None or self.judgment is None or not found:
            return [[] for _ in found], [None for _ in found]
        measured = measure(self._words, found, own)
        doubts: list[list[Doubt]] = [[] for _ in found]
        for name, fitted in self.judgment.fits.items():
            kind, _, which = name.partition(".")
            if which == ("searched" if is_given else "given"):
                continue
            for place in np.flatnonzero(sums(fitted, measured.values) > fitted.threshold).tolist():
                if not _is_too_short(found[place]):
                    doubts[place].append(_learned_doubt(kind, found[place], measured, place))
        if self.judgment.confidence is None or is_given:
            return doubts, [None for _ in found]
        confidences = chances(self.judgment.confidence, measured.values).round(4).tolist()
        return doubts, confidences

    def _by_rules(self, source: str, found: Translation) -> Iterator[Doubt]:
        text, tokens = found.text, found.tokens
        if found.status == "max_length":
            sentence = "The translation was cut off: it reached its length limit."
            yield Doubt(kind="max_length", sentence=sentence, start=0, end=len(text))
        loops = find_loops(found.source_tokens, tokens)
        if loops:
            spans = piece_spans(tokens, text)
            for first, last in loops:
                yield Doubt(
                    kind="loop",
                    sentence="The translation repeats the same words.",
                    start=spans[first][0],
                    end=spans[last - 1][1],
                )
        yield from _lengths(found, has_loop=bool(loops))
        missing, extra = different_numbers(source, text, *self.languages)
        if missing or extra:
            yield difference("numbers", "Numbers", missing, extra)
        fields, theirs = fields_in_turn(source), fields_in_turn(text)
        if fields != theirs and sorted(fields) == sorted(theirs):
            sentence = (
                f"The fields {', '.join(fields)} are in another order, but a program fills them in "
                "this one. Number them (%1$s)."
            )
            yield Doubt(kind="field_order", sentence=sentence)
        if is_untranslated(source, text):
            sentence = "The translation is the same as the source."
            yield Doubt(kind="untranslated", sentence=sentence, start=0, end=len(text))
        elif self.judgment and is_in_foreign_script(source, text, self.judgment.scripts):
            sentence = "The translation is in a script that its language does not use."
            yield Doubt(kind="wrong_script", sentence=sentence, start=0, end=len(text))
        # Unknown characters that were copied to the translation are right.
        unknown = [each for each in unknown_characters(found.source_tokens) if each not in text]
        if unknown:
            words = ", ".join(dict.fromkeys(unknown))
            sentence = f"The model has not learned these characters: {words}"
            yield Doubt(kind="unknown_word", sentence=sentence)

    def _about_source(self, source: str, learned: Sequence[Doubt]) -> Iterator[Doubt]:
        """A doubt about the language of the source by its words, if its pieces raised none."""
        kind = "source_language"
        if self._known is None or any(doubt.kind == kind for doubt in learned):
            return
        if is_of_unseen_words(self._known, source):
            yield Doubt(kind=kind, sentence=SENTENCES[kind])

    def _about_confidence(
        self, found: Translation, confidence: float | None, is_given: bool
    ) -> Iterator[Doubt]:
        if confidence is not None and self.judgment is not None:
            if confidence < self.judgment.low_confidence:
                sentence = f"The translation is only {confidence:.0%} likely to be right."
                yield Doubt(kind="low_confidence", sentence=sentence)
            return
        scores = found.token_scores
        least = self.judgment.low_score if self.judgment and is_given else LOW_SCORE
        if scores and sum(scores) < least * len(scores):
            sentence = "The model gives the words of the translation very low probabilities."
            yield Doubt(kind="low_confidence", sentence=sentence)


_FIELDS = tuple(field.name for field in fields(Translation))


def _with(found: Translation, doubts: Sequence[Doubt], confidence: float | None) -> Translation:
    """The same with more doubts and a confidence."""
    # `replace` takes five times as long, and this runs for each line.
    copied = object.__new__(Translation)
    for name in _FIELDS:
        object.__setattr__(copied, name, getattr(found, name))
    if doubts:
        object.__setattr__(copied, "doubts", (*found.doubts, *doubts))
    object.__setattr__(copied, "confidence", confidence)
    return copied


def judge_of(bundle: Bundle) -> Judge:
    """The judge of the model of a folder.

    Raises:
        FormatError: one of its regressions has unknown features, or its arrays about pieces are of
            other vocabularies.
    """
    if bundle.judgment is not None:
        _require_known_features(bundle.judgment)
        _require_known_pieces(bundle.judgment, bundle.src_vocab, bundle.tgt_vocab)
    return Judge(
        bundle.judgment,
        bundle.src_vocab,
        bundle.tgt_vocab,
        source_lang=bundle.source_lang,
        target_lang="" if bundle.target_langs else bundle.target_lang,
    )


def _require_known_features(judgment: Judgment) -> None:
    n = len(NAMES)
    for name, fitted in [*judgment.fits.items(), ("confidence", judgment.confidence)]:
        if fitted is None:
            continue
        n_weights, n_rows = len(fitted.weights), len(fitted.knots)
        # Without knots it may be of an earlier version, which had fewer features.
        fits = n_weights == n * (1 + n_rows) if n_rows else n_weights <= n
        if not fits:
            raise FormatError(
                f"{DOUBTS} of the model is damaged: {name} has {n_weights} weights and {n_rows} "
                f"rows of knots, which do not fit {n} features."
            )


def _require_known_pieces(judgment: Judgment, src_vocab: Vocab, tgt_vocab: Vocab) -> None:
    if not judgment.words:
        return
    for name, vocab in (("src.values", src_vocab), ("tgt.values", tgt_vocab)):
        shape = judgment.words[name].shape
        if shape != (vocab.size, N_VALUES):
            raise FormatError(
                f"{DOUBT_WORDS} of the model is damaged: {name} must have {vocab.size} rows of "
                f"{N_VALUES} numbers, but is {list(shape)}."
            )


def _is_too_short(found: Translation) -> bool:
    """Whether a translation is too short to tell missing text or its language."""
    return min(len(found.source_tokens), len(found.tokens)) < 2


def _lengths(found: Translation, *, has_loop: bool) -> Iterator[Doubt]:
    n_src, n_tgt = len(found.source_tokens), len(found.tokens)
    times, more = LENGTHS
    if n_tgt > times * n_src + more and not has_loop:
        sentence = "The translation is much longer than the source."
        yield Doubt(kind="length", sentence=sentence, start=0, end=len(found.text))
    elif n_src > times * n_tgt + more:
        sentence = "The translation is much shorter than the source."
        yield Doubt(kind="length", sentence=sentence, start=0, end=len(found.text))


def _learned_doubt(kind: str, found: Translation, measured: Measured, row: int) -> Doubt:
    sentence = SENTENCES[kind]
    if kind == "left_out":
        first, last = in_whole_words(found.source_tokens, *measured.src_span(row))
        words = spelled(found.source_tokens[first:last])
        return Doubt(kind=kind, sentence=f"{sentence}: {words}" if words else f"{sentence}.")
    if kind == "added":
        first, last = in_whole_words(found.tokens, *measured.tgt_span(row))
        if first == last:
            return Doubt(kind=kind, sentence=f"{sentence}.")
        spans = piece_spans(found.tokens, found.text)
        start, end = spans[first][0], spans[last - 1][1]
        return Doubt(
            kind=kind, sentence=f"{sentence}: {found.text[start:end]}", start=start, end=end
        )
    return Doubt(kind=kind, sentence=sentence)
