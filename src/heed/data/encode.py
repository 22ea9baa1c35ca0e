"""Clean pairs as ids on disk: the training pairs of a corpus, each with its language tag.

Those that a model has translated come last.
"""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from heed.data.clean import CleanReport
from heed.data.corpus import DataConfig
from heed.data.none_left import all_too_long
from heed.data.progress import Report, counted
from heed.data.readers import Pair
from heed.data.split import MADE, TRAIN
from heed.data.spool import Spool
from heed.data.store import Store
from heed.text.vocab import Vocab

_BLOCK_PAIRS = 4096


def encode_train(
    kept: Spool,
    vocabs: tuple[Vocab, Vocab],
    path: Path,
    config: DataConfig,
    cleaning: CleanReport,
    report: Report,
) -> tuple[dict[str, int], int]:
    """Write the training pairs as ids.

    Returns:
        Their number of tokens, `<eos>` included, and how many rows are of `MADE` pairs.
    """
    src_vocab, tgt_vocab = vocabs
    tokens = {"source": 0, "target": 0}
    n_real, n_made = (int((kept.splits == split).sum()) for split in (TRAIN, MADE))
    read = chain(kept.pairs(TRAIN), kept.pairs(MADE))
    pairs = counted(_encoded(read, vocabs), report, "encoding", of=n_real + n_made)
    n_made_rows = 0
    with Store.create(path, src_vocab.hash, tgt_vocab.hash) as store:
        for number, (pair, src_ids, tgt_ids) in enumerate(pairs):
            rows = [(_tag(src_vocab, pair.target_lang) + src_ids, tgt_ids)]
            if config.both_directions:
                rows.append((_tag(src_vocab, pair.source_lang) + tgt_ids, src_ids))
            if max(len(ids) for row in rows for ids in row) + 1 > config.max_length:
                cleaning.n_kept -= 1
                cleaning.drop("too_many_pieces", pair)
                continue
            n_made_rows += len(rows) if number >= n_real else 0
            for row in rows:
                store.add(*row)
                tokens["source"] += len(row[0]) + 1
                tokens["target"] += len(row[1]) + 1
        if not tokens["target"]:
            raise all_too_long(cleaning, config)
    return tokens, n_made_rows


def _encoded(
    pairs: Iterator[Pair], vocabs: tuple[Vocab, Vocab]
) -> Iterator[tuple[Pair, list[int], list[int]]]:
    """Each pair and the ids of both sides; many pairs at a time, which is faster."""
    src_vocab, tgt_vocab = vocabs
    while block := list(islice(pairs, _BLOCK_PAIRS)):
        src_rows = src_vocab.encode_all(pair.src for pair in block)
        tgt_rows = tgt_vocab.encode_all(pair.tgt for pair in block)
        yield from zip(block, src_rows, tgt_rows, strict=True)


def _tag(vocab: Vocab, language: str) -> list[int]:
    return [vocab.language_id(language)] if vocab.languages else []
