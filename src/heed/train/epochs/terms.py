"""Terms with the translation that is wanted, shown in the source: a model learns to use them.

Source: Dinu et al. 2019, "Training neural machine translation to apply terminology constraints".
"""

import numpy as np

from heed.text.invent import invent_name
from heed.text.scripts import SPELLED, main_script
from heed.text.terms import Shown, show_terms
from heed.train.epochs.insert import Texts, content_words, replaced
from heed.train.epochs.marked import MarkedPair, character

P_OTHER = 0.35
"""Share of terms whose translation is a word that nobody has: it has to be copied, not guessed."""
P_TWO = 0.3
"""Share of sentences with a second term."""


def with_terms(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """One or two words of the source, each shown with its translation."""
    anchors = content_words(pair)
    if not anchors:
        return None
    order = random.permutation(len(anchors))[: 1 + (random.random() < P_TWO)]
    shown, changes = [], []
    for number in order.tolist():
        anchor = anchors[number]
        target = pair.tgt[slice(*anchor.tgt)]
        if random.random() < P_OTHER:
            target = _other(pair.tgt, target, random)
            changes.append((anchor.tgt, target))
        shown.append(Shown(anchor.src[0], anchor.src[1], target))
    signs = character("term", 0), character("term", 1), character("term", 2)
    src, _ = show_terms(pair.src, sorted(shown), signs)
    return src, replaced(pair.tgt, changes)


def _other(text: str, target: str, random: np.random.Generator) -> str:
    """A word that nobody has, in the script of a text and the case of a word of it."""
    script = main_script(text)
    name = invent_name(random, script if script in SPELLED else "latin")
    return name.lower() if target.islower() else name
