"""Running text to ids and back: line breaks are ids too, and no blank is added in front.

A sentence's ids begin as after a blank (`Vocab.encode`). Those of running text begin as after a
line break, so that a prompt is read as the same text was in training.
"""

from collections.abc import Iterable

from heed.text.vocab import Vocab

_BREAK = "\n"


def stream_ids(vocab: Vocab, texts: Iterable[str]) -> list[list[int]]:
    """The ids of each text as if a line break came before it; joined texts give joined ids.

    Args:
        vocab: the pieces.
        texts: if they belong together, each except the last ends with a line break.
    """
    n_added = len(vocab.encode(_BREAK))
    return [ids[n_added:] for ids in vocab.encode_all(_BREAK + text for text in texts)]


def stream_text(vocab: Vocab, ids: Iterable[int]) -> str:
    """The text of ids from `stream_ids`; control ids decode to nothing."""
    return vocab.decode([*vocab.encode(_BREAK), *ids])[len(_BREAK) :]
