"""Query a model in training with a few dozen sentences, for signs of faults.

Each number measures one thing, such as the effect of the source on the predictions. They are not
scores; `checks.py` interprets them.
"""

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from heed.data.batch import IdPairs
from heed.model.layers import relu_networks
from heed.model.masks import padding_mask
from heed.model.network import TorchNetwork
from heed.train.step.validate import DevSet
from heed.translate.lines import LineReader
from heed.translate.whole import read_pair

N_PAIRS = 16
"""Pairs of training and as many of dev: a gain (below) is nats, and known to a tenth of one."""

MAX_TOKENS = 39
"""Longer pairs are left out: they would cost most of the time and say little more."""

MIN_CHOICE = 4
"""Source tokens among which a head can be said to choose."""

ROWS = 8
"""Pairs computed at once: 8 × 39 × 32 000 logits are 40 MB."""

IdPair = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True)
class ProbePairs:
    """The sentences of all probes, as ids; a source ends with `<eos>`.

    Attributes:
        train: training pairs.
        dev: development pairs.
        has_tags: each source begins with the tag of the language it is to be translated into.
    """

    train: list[IdPair]
    dev: list[IdPair]
    has_tags: bool = False


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The results of a probe.

    Attributes:
        train_loss: nats a target token on the training pairs, without dropout.
        dev_loss: the same on the dev pairs.
        train_gain: nats a token gained by the right source over another pair's source.
        dev_gain: the same on the dev pairs.
        source_effect: mean change of a target token's log-prob, up or down, when another source is
            read; exactly 0 in a model that cannot read the source.
        leak: largest change of a target token's log-prob when only words after it change.
        echo: share of target positions where the word just read is also the word predicted.
        dead_share: share of ReLU features that fire at no position, in the layer with most of
            them; None in a model without ReLU.
        seconds: duration of the probe.
        evenness: entropy of cross-attention as a share of the maximum, in the sharpest head: 1 if
            every head reads all words equally; None for very short sources, or without
            cross-attention.
    """

    train_loss: float
    dev_loss: float
    train_gain: float
    dev_gain: float
    source_effect: float
    leak: float
    echo: float
    dead_share: float | None
    seconds: float
    evenness: float | None = None


def choose_pairs(
    train: IdPairs, n_train: int, dev_sets: list[DevSet], reader: LineReader
) -> ProbePairs:
    """Take probe pairs evenly from all of training and dev, with slots for their common spans.

    Args:
        train: the training pairs, as texts cut into pieces.
        n_train: number of training pairs.
        dev_sets: the development sentences.
        reader: turns both into ids.
    """

    def read(src: str, tgt: str, tag: list[int]) -> IdPair:
        chunk = read_pair(reader, src, tgt, tag)
        return chunk.src_ids, chunk.prefix

    src_vocab, tgt_vocab = reader.src_vocab, reader.tgt_vocab
    pairs = []
    for i in _spread(n_train, 4 * N_PAIRS):
        ids = train.src(i).tolist()
        tag = list(itertools.takewhile(src_vocab.is_control, ids))
        pairs.append(read(src_vocab.decode(ids), tgt_vocab.decode(train.tgt(i).tolist()), tag))
    dev = []
    for one in dev_sets:
        tag = reader.tag(one.target_lang or None)
        for i in _spread(len(one.src), max(1, 4 * N_PAIRS // len(dev_sets))):
            dev.append(read(one.src[i], one.tgt[i], tag))
    most = min(MAX_TOKENS, reader.max_whole_tokens)
    return ProbePairs(
        train=_short(pairs, most), dev=_short(dev, most), has_tags=bool(reader.target_langs)
    )


def probe(model: TorchNetwork, pairs: ProbePairs, special_ids: Mapping[str, int]) -> Probe:
    """Probe the model, which is left in evaluation mode.

    Args:
        model: with its current weights.
        pairs: from `choose_pairs`; none of the lists is empty.
        special_ids: `eos_id` and `bos_id` are used.
    """
    started_at = time.monotonic()
    passes = _ForcedPasses(model.eval(), special_ids["eos_id"], special_ids["bos_id"])
    with _firing(model) as n_dead:
        train, echo = passes.log_probs(pairs.train)
        dead_share = n_dead()
    train_other, _ = passes.log_probs(_with_other_sources(pairs.train, pairs.dev, pairs.has_tags))
    dev, dev_echo = passes.log_probs(pairs.dev)
    dev_other, _ = passes.log_probs(_with_other_sources(pairs.dev, pairs.train, pairs.has_tags))
    return Probe(
        train_loss=-_mean(train),
        dev_loss=-_mean(dev),
        train_gain=_mean(train) - _mean(train_other),
        dev_gain=_mean(dev) - _mean(dev_other),
        source_effect=_mean([(a - b).abs() for a, b in zip(train, train_other, strict=True)]),
        leak=passes.leak(pairs.dev),
        echo=min(echo, dev_echo),
        dead_share=dead_share,
        evenness=passes.evenness(pairs.train),
        seconds=time.monotonic() - started_at,
    )


class _ForcedPasses:
    """Forced passes over id pairs, a few rows at a time."""

    def __init__(self, model: TorchNetwork, eos_id: int, bos_id: int) -> None:
        self.model, self.eos_id, self.bos_id = model, eos_id, bos_id
        self.device = model.output.weight.device

    @torch.inference_mode()
    def log_probs(self, pairs: Sequence[IdPair]) -> tuple[list[Tensor], float]:
        """Log-probs of every pair's target tokens, `(tgt_len)` each, and the share of echoes."""
        found, n_echoes, n_tokens = [], 0, 0
        for start in range(0, len(pairs), ROWS):
            src, tgt_in, tgt_out = self._tensors(pairs[start : start + ROWS])
            logits = self.model.teacher_forced(src, tgt_in)
            rows = logits.log_softmax(dim=-1).gather(2, tgt_out[..., None])[..., 0]
            # `<bos>` is never a target, so the first position cannot echo.
            is_echo = logits.argmax(dim=-1)[:, 1:] == tgt_in[:, 1:]
            for row, echoes, (_, tgt) in zip(rows, is_echo, pairs[start:], strict=False):
                found.append(row[: len(tgt) + 1].double().cpu())
                n_echoes += int(echoes[: len(tgt)].sum())
                n_tokens += len(tgt)
        return found, n_echoes / max(1, n_tokens)

    @torch.inference_mode()
    def evenness(self, pairs: Sequence[IdPair]) -> float | None:
        """Normalized entropy of the sharpest cross-attention head of all decoder layers."""
        pairs = [pair for pair in pairs if len(pair[0]) >= MIN_CHOICE][:ROWS]
        if not pairs:
            return None
        src, tgt_in, _ = self._tensors(pairs)
        caught = self.model.source_attention(src, tgt_in)
        if not caught:  # the model does not attend to the source
            return None
        most = torch.tensor([math.log(len(ids)) for ids, _ in pairs], device=self.device)
        is_real = tgt_in != self.model.pad_id
        heads = []
        for weights in caught:
            entropy = torch.special.entr(weights).sum(dim=-1) / most[:, None, None]
            heads.append(entropy.transpose(1, 2)[is_real].mean(dim=0))
        return torch.cat(heads).min().item()

    @torch.no_grad()
    def leak(self, pairs: Sequence[IdPair]) -> float:
        """Change of the first halves' log-probs when the second halves change.

        It computes as in training, dropout included, with the same random numbers twice, to find
        leaks that exist only in training.
        """
        src, tgt_in, tgt_out = self._tensors(pairs[:ROWS])
        ends = torch.tensor([(len(tgt) + 1) // 2 for _, tgt in pairs[:ROWS]], device=self.device)
        is_first = torch.arange(tgt_in.size(1), device=self.device) < ends[:, None]
        other_in = torch.where(is_first, tgt_in, self.bos_id)
        found = []
        self.model.train()
        for given in (tgt_in, other_in):
            torch.manual_seed(0)  # the loop seeds every step, so this changes nothing
            states = self.model(src, given, padding_mask(src, self.model.pad_id))
            logits = self.model.logits(states)
            found.append(logits.log_softmax(dim=-1).gather(2, tgt_out[..., None])[..., 0])
        self.model.eval()
        changes = (found[0] - found[1]).abs()[is_first]
        return changes.max().item() if len(changes) else 0.0

    def _tensors(self, pairs: Sequence[IdPair]) -> tuple[Tensor, Tensor, Tensor]:
        """Sources, decoder input and output, made without the loader, which may be faulty."""
        return (
            self._padded([src for src, _ in pairs]),
            self._padded([[self.bos_id, *tgt] for _, tgt in pairs]),
            self._padded([[*tgt, self.eos_id] for _, tgt in pairs]),
        )

    def _padded(self, rows: list[list[int]]) -> Tensor:
        width, pad_id = max(map(len, rows)), self.model.pad_id
        return torch.tensor(
            [row + [pad_id] * (width - len(row)) for row in rows], device=self.device
        )


@contextmanager
def _firing(model: nn.Module) -> Iterator["_CountDead"]:
    """Record which ReLU features fire inside the block."""
    count = _CountDead()
    hooks: list[RemovableHandle] = []
    for network in relu_networks(model):
        count.fired.append(None)
        hooks.append(network.expand.register_forward_hook(count.hook(len(hooks))))
    try:
        yield count
    finally:
        for hook in hooks:
            hook.remove()


class _CountDead:
    def __init__(self) -> None:
        self.fired: list[Tensor | None] = []

    def hook(self, place: int) -> Callable[[nn.Module, object, Tensor], None]:
        def note(_module: nn.Module, _inputs: object, output: Tensor) -> None:
            fires = (output > 0).flatten(0, -2).any(dim=0)
            before = self.fired[place]
            self.fired[place] = fires if before is None else before | fires

        return note

    def __call__(self) -> float | None:
        """Share of features that never fired, in the worst layer."""
        shares = [1 - fires.double().mean().item() for fires in self.fired if fires is not None]
        return max(shares, default=None)


def _with_other_sources(pairs: list[IdPair], others: list[IdPair], has_tags: bool) -> list[IdPair]:
    """Each target with another source: that of the pair half the list away, or the next that fits.

    It fits if it differs and has the same language tag, so that only its words differ. If the list
    has none, the source comes from `others`, if need be with any tag. Training and dev pairs share
    no source, so there is always one.
    """
    half = (len(pairs) + 1) // 2
    found = []
    for i, (own, tgt) in enumerate(pairs):
        turned = (pairs[(i + half + step) % len(pairs)] for step in range(len(pairs)))
        different = [src for src, _ in (*turned, *others) if src != own]
        fitting = [src for src in different if not has_tags or src[0] == own[0]]
        found.append(((fitting or different or [own])[0], tgt))
    return found


def _short(pairs: list[IdPair], most: int) -> list[IdPair]:
    """`N_PAIRS` of the pairs of at most `most` tokens a side, evenly from all of them."""

    def length(pair: IdPair) -> int:
        return max(map(len, pair))

    fitting = [pair for pair in pairs if length(pair) <= most] or sorted(pairs, key=length)[:1]
    return [fitting[i] for i in _spread(len(fitting), N_PAIRS)]


def _spread(n: int, n_wanted: int) -> list[int]:
    """`n_wanted` evenly spaced numbers below `n`, or all of them if there are fewer."""
    return list(range(n)) if n <= n_wanted else [i * n // n_wanted for i in range(n_wanted)]


def _mean(rows: list[Tensor]) -> float:
    return torch.cat(rows).mean().item()
