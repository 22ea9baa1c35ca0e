"""Files with counts of the training text that belong to the vocabularies of a model."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from heed.bundle.find import FOREIGN, KNOWN_WORDS
from heed.disk.tensors import decode_tensors, encode_tensors
from heed.errors import FormatError
from heed.text.known import KnownWords
from heed.text.vocab import Vocab

FILES = KNOWN_WORDS, FOREIGN


def counted_files(src_vocab: Vocab, tgt_vocab: Vocab) -> dict[str, bytes]:
    """The files to write, by name."""
    files = {}
    if src_vocab.known_words is not None:
        files[KNOWN_WORDS] = src_vocab.known_words.to_bytes()
    if tgt_vocab.foreign:
        is_foreign = np.zeros((len(tgt_vocab.foreign), tgt_vocab.size), np.uint8)
        for row, ids in zip(is_foreign, tgt_vocab.foreign.values(), strict=True):
            row[[*ids]] = 1
        tags = np.array([*tgt_vocab.foreign], np.int32)
        files[FOREIGN] = encode_tensors({"tags": tags, "is_foreign": is_foreign})
    return files


def read_counted(
    files: Mapping[str, bytes], src_vocab: Vocab, tgt_vocab: Vocab, folder: Path
) -> None:
    """Give vocabularies what `counted_files` wrote.

    Args:
        files: contents by name.
        src_vocab: gets the known words.
        tgt_vocab: gets the pieces of other languages.
        folder: that of the files, for errors.

    Raises:
        FormatError: a file holds something else, or belongs to other vocabularies.
    """
    if KNOWN_WORDS in files:
        where = folder / KNOWN_WORDS
        src_vocab.known_words = KnownWords.from_bytes(files[KNOWN_WORDS], where)
    if FOREIGN not in files:
        return
    arrays = decode_tensors(files[FOREIGN], folder / FOREIGN)
    nothing = np.zeros(0, np.float32)
    tags, is_foreign = (arrays.get(name, nothing) for name in ("tags", "is_foreign"))
    known = {src_vocab.language_id(language) for language in src_vocab.languages}
    is_sound = (
        len(arrays) == 2
        and tags.dtype == np.int32
        and is_foreign.dtype == np.uint8
        and is_foreign.shape == (*tags.shape, tgt_vocab.size)
        and {*tags.tolist()} <= known
    )
    if not is_sound:
        raise FormatError(
            f"{folder / FOREIGN} does not hold the pieces of this model's target languages. Get "
            "the model again, or train it again."
        )
    tgt_vocab.foreign = {
        tag: tuple(np.flatnonzero(row).tolist())
        for tag, row in zip(tags.tolist(), is_foreign, strict=True)
    }
