"""Scores of given pairs, probabilities of the next token, and attention to the source."""

from collections.abc import Sequence

from heed.decode.batching import batches, padded
from heed.decode.score import score_pairs
from heed.errors import ConfigError
from heed.model.interface import Decodable, Inspectable
from heed.text.vocab import Vocab
from heed.translate.lines import LineReader
from heed.translate.result import PairScore

Weights = list[list[float]]


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
        tag: in front of each source.
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


def cross_attention(
    model: Decodable,
    vocabs: tuple[Vocab, Vocab],
    sources: list[list[int]],
    targets: list[list[int]],
    layer: int = -1,
) -> list[Weights]:
    """Weights of one decoder layer, mean over heads, without special source pieces.

    Args:
        model: anything that can be decoded, in evaluation mode.
        vocabs: of the source and of the target.
        sources: source ids, `<eos>` included.
        targets: target ids, without `<bos>` and `<eos>`.
        layer: decoder layer, from 0, or from the end as in a list.

    Returns:
        One matrix a pair, `(n_target_tokens, n_source_tokens)`.

    Raises:
        ConfigError: the model has no such layer, or no attention to the source.
    """
    src_vocab, tgt_vocab = vocabs
    layers = []
    if isinstance(model, Inspectable):
        layers = model.cross_attention(
            padded(sources, src_vocab.pad_id),
            padded([[tgt_vocab.bos_id, *ids] for ids in targets], tgt_vocab.pad_id),
        )
    if not layers:
        raise ConfigError(
            "this model has no attention to the source, so there is no alignment to show."
        )
    if layer not in range(-len(layers), len(layers)):
        raise ConfigError(
            f"layer must lie between {-len(layers)} and {len(layers) - 1}, but is {layer}."
        )
    mean = layers[layer].mean(axis=1)
    matrices = []
    for weights, src_ids, tgt_ids in zip(mean, sources, targets, strict=True):
        shown = [i for i, token in enumerate(src_ids) if not src_vocab.is_control(token)]
        # Row t is the step that read target token t - 1 and wrote token t.
        matrices.append(weights[: len(tgt_ids), shown].tolist())
    return matrices
