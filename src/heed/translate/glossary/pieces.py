"""Terms as ids: phrases that a search must find, and phrases that it must not."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from heed.decode.phrases import Form, Phrases, WordEdges
from heed.text.scripts import is_solid
from heed.text.slots import encode_with
from heed.text.vocab import Vocab
from heed.translate.glossary.glossary import Occurrence
from heed.translate.words import is_byte_piece


def phrases_of(
    occurrences: Sequence[Occurrence], source: str, vocab: Vocab, banned: Iterable[str] = ()
) -> Phrases:
    """The phrases that the translation of a source must and must not contain.

    Args:
        occurrences: of terms in the source.
        source: the source text.
        vocab: of the target side.
        banned: forbidden words.
    """
    required = tuple(_forms(one, source, vocab) for one in occurrences if one.targets)
    never = dict.fromkeys(ids for text in banned for ids in _spellings(text, vocab, glued=True))
    return Phrases(
        required=required,
        banned=tuple(ids for ids in never if not _is_within(ids, required)),
        edges=word_edges(vocab),
    )


@lru_cache(maxsize=8)
def word_edges(vocab: Vocab) -> WordEdges:
    """The pieces of a vocabulary that continue a word, and those that may be continued."""
    inside: set[int] = set()
    open_ended: set[int] = set()
    for id, piece in enumerate(vocab.pieces(range(vocab.size))):
        if vocab.is_control(id):
            continue
        if is_byte_piece(piece):
            # A byte may be a letter, or a part of one.
            character = chr(int(piece[3:5], 16))
            piece = character if character.isascii() else "a"
        if _is_letter(piece[:1]):
            inside.add(id)
        if _is_letter(piece[-1:]):
            open_ended.add(id)
    return WordEdges(begins_inside=frozenset(inside), ends_inside=frozenset(open_ended))


def _forms(occurrence: Occurrence, source: str, vocab: Vocab) -> tuple[Form, ...]:
    before = source[occurrence.start - 1 : occurrence.start]
    glued = bool(before) and not before.isspace()
    found: dict[Form, None] = {}
    for target in occurrence.targets:
        # A term may begin the sentence.
        capital = target if occurrence.is_kept else target[:1].upper() + target[1:]
        for text in dict.fromkeys((target, capital)):
            found.update(dict.fromkeys(_spellings(text, vocab, glued=glued)))
    return tuple(found)


def _spellings(text: str, vocab: Vocab, *, glued: bool) -> list[Form]:
    """The ids of a text after a blank, and after another sign or character."""
    found = [tuple(vocab.encode(text))]
    if glued or is_solid(text[:1]):
        # With a mark in front, the text is segmented as within a longer text.
        found.append(tuple(encode_with(vocab, f"\N{LEFT PARENTHESIS}{text}", [(0, 1, 0)])[1:]))
    return [form for form in found if form]


def _is_within(ids: Form, required: Iterable[Iterable[Form]]) -> bool:
    """Whether a sequence is part of a required one."""
    return any(
        ids == form[start : start + len(ids)]
        for forms in required
        for form in forms
        for start in range(len(form))
    )


def _is_letter(character: str) -> bool:
    return character.isalnum() and not is_solid(character)
