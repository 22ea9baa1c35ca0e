"""How probable a model finds given pairs of lines, each read whole and in batches of like lengths.

Not here: the log-probabilities of padded ids (`decode/score.py`). Read on in `translator.py`.
"""

from collections.abc import Sequence

from heed.decode.batching import batches, padded
from heed.decode.score import score_pairs
from heed.model.interface import Decodable
from heed.translate.lines import LineReader
from heed.translate.result import PairScore


def score_lines(
    model: Decodable,
    reader: LineReader,
    src: Sequence[str],
    tgt: Sequence[str],
    tag: list[int],
    *,
    max_tokens: int,
    max_rows: int | None,
) -> list[PairScore]:
    """Score pairs, all but those with a side that is too long to be read whole.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: turns lines into ids.
        src: source lines.
        tgt: their translations, as many.
        tag: opens each source.
        max_tokens: of a batch, as in `batches`.
        max_rows: of a batch, as in `batches`.

    Returns:
        One score a pair, in order; its status is `too_long` where nothing was computed.
    """
    src_vocab, vocab = reader.src_vocab, reader.tgt_vocab
    src_ids = [reader.src_ids(text, tag) for text in src]
    tgt_out = [[*reader.tgt_ids(text), vocab.eos_id] for text in tgt]
    longest = reader.max_whole_tokens + 1  # and <eos>
    whole = [
        i for i, ids in enumerate(src_ids) if max(len(ids) - len(tag), len(tgt_out[i])) <= longest
    ]
    scores = [PairScore(tokens=[], token_scores=[], status="too_long")] * len(src_ids)
    lengths = [max(len(src_ids[i]), len(tgt_out[i])) for i in whole]
    for places in batches(lengths, max_tokens, max_rows):
        batch = [whole[place] for place in places]
        log_probs = score_pairs(
            model,
            padded([src_ids[i] for i in batch], src_vocab.pad_id),
            padded([[vocab.bos_id, *tgt_out[i][:-1]] for i in batch], vocab.pad_id),
            padded([tgt_out[i] for i in batch], vocab.pad_id),
            pad_id=vocab.pad_id,
        ).tolist()
        for i, row in zip(batch, log_probs, strict=True):
            scores[i] = PairScore(
                tokens=vocab.pieces(tgt_out[i]), token_scores=row[: len(tgt_out[i])]
            )
    return scores
