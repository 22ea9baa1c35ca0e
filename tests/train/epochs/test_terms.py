"""Terms shown in training: what a source asks for stands in its target."""

import numpy as np

from heed.train.epochs.anchors import Anchor
from heed.train.epochs.marked import MarkedPair, SlotText, character, in_order
from heed.train.epochs.terms import with_terms

SRC, TGT = "The old bridge is near.", "Die alte Brücke ist nah."
ANCHORS = [Anchor((4, 7), (4, 8)), Anchor((8, 14), (9, 15))]
SIGNS = [character("term", number) for number in range(3)]


class NoSlots(SlotText):
    """Enough of one for changes that need no slot."""

    def __init__(self) -> None:
        pass


def pair(anchors: list[Anchor] = ANCHORS) -> MarkedPair:
    return MarkedPair(src=SRC, tgt=TGT, find=lambda: anchors, slots=NoSlots())


def test_what_is_shown_beside_a_word_stands_in_the_target() -> None:
    begin, between, end = SIGNS
    seen = set()
    for seed in range(200):
        src, tgt = with_terms(pair(), np.random.default_rng(seed)) or ("", "")
        targets = [part.split(end)[0].strip() for part in src.split(between)[1:]]
        assert targets and all(target in tgt.split() for target in targets)
        seen |= {*targets}
        # Without what is shown, the source is as it was.
        plain = src
        for target in targets:
            plain = plain.replace(f"{between} {target}{end}", "")
        assert plain.replace(begin, "") == SRC
        assert in_order(src, tgt) == (src, tgt)
    # The target's own words, and many that nobody has.
    assert {"alte", "Brücke"} < seen and len(seen) > 30


def test_without_sure_words_there_is_nothing_to_show() -> None:
    assert with_terms(pair([]), np.random.default_rng(0)) is None
