"""Which pieces a translation never has, by its target language; a batch of several is divided.

A model of several target languages does not write the pieces of other languages: see
`heed.data.foreign`.
"""

from collections.abc import Sequence

from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis
from heed.decode.state import IsWanted as BatchIsWanted
from heed.text.vocab import Vocab
from heed.translate.empty import Search
from heed.translate.parts import Chunk
from heed.translate.wanted import of_places


def never_written(vocab: Vocab, part: Chunk) -> list[int]:
    """The ids that are never part of a translation.

    Args:
        vocab: of the target side.
        part: its tag says the language if there are several. What a glossary requires, or a memory
            proposes, may have pieces of any.
    """
    controls = [id for id in vocab.control_ids if id != vocab.eos_id]
    if not (foreign := vocab.foreign.get(part.src_ids[0], ())):
        return controls
    given = _given(part)
    return [*controls, *(id for id in foreign if id not in given)]


def each_language(search: Search, vocab: Vocab) -> Search:
    """The same search, for parts that never have different pieces.

    Args:
        search: searches parts for which `never_written` is the same.
        vocab: of the target side.
    """
    if not vocab.foreign:
        return search

    def changed(
        parts: Sequence[Chunk], options: DecodeOptions, are_wanted: BatchIsWanted | None
    ) -> list[list[Hypothesis]]:
        groups: dict[object, list[int]] = {}
        for place, part in enumerate(parts):
            tag = part.src_ids[0]
            if allowed := _given(part):
                allowed = allowed.intersection(vocab.foreign.get(tag, ()))
            groups.setdefault((tag, allowed), []).append(place)
        found: list[list[Hypothesis]] = [[] for _ in parts]
        for places in groups.values():
            wanted = of_places(are_wanted, places)
            some = search([parts[place] for place in places], options, wanted)
            for place, hypotheses in zip(places, some, strict=True):
                found[place] = hypotheses
        return found

    return changed


def _given(part: Chunk) -> frozenset[int]:
    """The target ids that a glossary requires, or a memory proposes."""
    phrases, guide = part.phrases, part.guide
    return frozenset((*(phrases.ids if phrases else ()), *(guide.ids if guide else ())))
