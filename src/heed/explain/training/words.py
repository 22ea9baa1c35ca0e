"""The differences between two translations of a sentence, word by word."""

import difflib
import re
from typing import Literal

Change = Literal["same", "new", "gone"]
Piece = tuple[Change, str]

MAX_WORDS = 400
"""Most words of a sentence; longer ones are compared as a whole: comparison takes n² steps."""

# Scripts without blanks: each character is a word. Han, kana, Thai, Lao, Burmese, Khmer, Tibetan.
_CHARACTER = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"
_WORD = re.compile(rf"[{_CHARACTER}]|[^\s{_CHARACTER}]+\s*|\s+")


def differences(before: str, now: str) -> list[Piece]:
    """A translation as pieces that are the `same` as before, `new`, or `gone`.

    Args:
        before: the earlier translation.
        now: the later translation: its pieces `same` and `new` joined.
    """
    if before == now or not before:
        return [("same" if before else "new", now)] if now else []
    old, new = _WORD.findall(before), _WORD.findall(now)
    if len(old) > MAX_WORDS or len(new) > MAX_WORDS:
        return [("gone", before), ("new", now)]
    # The blank after a word is not compared, because the last word has none.
    matcher = difflib.SequenceMatcher(
        None, [w.strip() for w in old], [w.strip() for w in new], autojunk=False
    )
    pieces: list[Piece] = []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            pieces.append(("same", "".join(new[new_start:new_end])))
            continue
        if old_end > old_start:
            pieces.append(("gone", "".join(old[old_start:old_end])))
        if new_end > new_start:
            pieces.append(("new", "".join(new[new_start:new_end])))
    return pieces
