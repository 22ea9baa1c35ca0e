"""Parts of a model that can be switched off, scaled or patched; each is turned into edits.

A part has the name of its tensor in `heed.model.trace`. The effects of a change are in
`effects.py`.
"""

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from numbers import Integral
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from heed.errors import UsageError
from heed.explain.causes.pair import Pair
from heed.model.stages import BOTH
from heed.model.trace import Edit
from heed.translate.arguments import require_number, require_text, require_whole
from heed.translate.trace import Trace

Edits = dict[str, Edit]


@runtime_checkable
class Cause(Protocol):
    """A change of a model."""

    def edits(self, pair: Pair) -> Edits:
        """The edits that make the change, for one pass or one search.

        Args:
            pair: the pair to compute with.

        Raises:
            UsageError: the model has no such part, or a field has a wrong type.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The context of one head, before W^O mixes the heads, times a number.

    Scale 0 is equivalent to zeros in the head's columns of W^O.

    Attributes:
        attention: its name, such as `decoder.0.cross_attention`.
        head: index from 0.
        scale: 0 = off, 1 = unchanged.
    """

    attention: str
    head: int
    scale: float = 0.0

    def __post_init__(self) -> None:
        require_text(attention=self.attention)
        require_number(self.scale, "scale")

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        n_heads = heads_of(pair)
        _require(self.attention, n_heads, "attention heads")
        number = within(self.head, n_heads[self.attention], f"head of {self.attention}")
        factors = torch.ones(n_heads[self.attention], 1)
        factors[number] = self.scale

        def scaled(joined: Tensor) -> Tensor:
            heads = joined.reshape(*joined.shape[:-1], len(factors), -1)
            return (heads * factors.to(joined)).flatten(-2)

        return {f"{self.attention}.joined": scaled}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sublayer:
    """The output of a sublayer, which it adds to the residual stream, times a number.

    Attributes:
        name: its name, such as `encoder.0.self_attention` or `encoder.0.feed_forward`.
        scale: 0 = it adds nothing, 1 = unchanged.
    """

    name: str
    scale: float = 0.0

    def __post_init__(self) -> None:
        require_text(name=self.name)
        require_number(self.scale, "scale")

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        _require(self.name, dict.fromkeys(sublayers_of(pair), 1), "sublayers")
        return {f"{self.name}.out": lambda out: self.scale * out}


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """A layer to bypass: its output becomes in + scale · (out - in).

    With pre-norm, this equals switching off its sublayers; with post-norm, its norms would still
    act in that case.

    Attributes:
        name: its name, such as `encoder.0`.
        scale: 0 = bypassed, 1 = unchanged.
    """

    name: str
    scale: float = 0.0

    def __post_init__(self) -> None:
        require_text(name=self.name)
        require_number(self.scale, "scale")

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        _require(self.name, dict.fromkeys(layers_of(pair), 1), "layers")
        before: list[Tensor] = []

        def remember(x: Tensor) -> Tensor:
            before[:] = [x]
            return x

        def pass_by(out: Tensor) -> Tensor:
            # Exact at 0 and at 1, unlike in + scale · (out - in).
            return (1 - self.scale) * before[0] + self.scale * out

        return {f"{self.name}.in": remember, f"{self.name}.out": pass_by}


@dataclass(frozen=True, kw_only=True, slots=True)
class Feature:
    """One feature of a feed-forward network after its activation, times a number.

    Scale 0 is equivalent to zeros in the feature's column of W_2.

    Attributes:
        feed_forward: its name, such as `decoder.1.feed_forward`.
        feature: index from 0.
        scale: 0 = off, 1 = unchanged.
    """

    feed_forward: str
    feature: int
    scale: float = 0.0

    def __post_init__(self) -> None:
        require_text(feed_forward=self.feed_forward)
        require_number(self.scale, "scale")

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        n_features = features_of(pair)
        _require(self.feed_forward, n_features, "feed-forward features")
        width = n_features[self.feed_forward]
        number = within(self.feature, width, f"feature of {self.feed_forward}")
        factors = torch.ones(width)
        factors[number] = self.scale
        return {f"{self.feed_forward}.activated": lambda x: x * factors.to(x)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """The attention to one position, times a number; the weights of a row keep their sum.

    Scale 0 is equivalent to masking the position.

    Attributes:
        attention: its name, such as `encoder.0.self_attention`.
        position: index of the key, from 0.
        scale: 0 = masked, 1 = unchanged; not negative.
    """

    attention: str
    position: int
    scale: float = 0.0

    def __post_init__(self) -> None:
        require_text(attention=self.attention)
        require_number(self.scale, "scale")

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        n_keys = keys_of(pair)
        _require(self.attention, n_keys, "softmax attention")
        if self.scale < 0:
            raise UsageError(f"The scale of a position must be 0 or more, but is {self.scale}.")
        number = within(self.position, n_keys[self.attention], f"position of {self.attention}")
        is_own = self.attention.endswith("self_attention")
        n_read = 0

        def scaled(weights: Tensor) -> Tensor:
            nonlocal n_read
            n_read += weights.size(-2)
            if is_own and weights.size(-1) < n_read:
                raise UsageError(
                    f"{self.attention} attends to a sliding window, so positions cannot be "
                    "switched off in a search."
                )
            if number >= weights.size(-1):  # in a search, this position is not written yet
                return weights
            factors = weights.new_ones(weights.size(-1))
            factors[number] = self.scale
            kept = weights * factors
            total = kept.sum(dim=-1, keepdim=True)
            ratio = weights.sum(dim=-1, keepdim=True) / total.masked_fill(total == 0, 1.0)
            return kept * ratio

        return {f"{self.attention}.weights": scaled}


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """A tensor of another sentence that replaces this one's, at some positions.

    Attributes:
        name: the tensor's name; it has one axis of positions.
        other: a trace by the same model that contains it.
        positions: maps positions of this sentence to those of the other; None = all that both
            have, each to itself.
        head: the only head to patch, for a tensor with an axis of heads; None = all heads.

    Source: Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation
        Analysis"; Meng et al. 2022, "Locating and Editing Factual Associations in GPT", section 2.
    """

    name: str
    other: Trace = field(repr=False)
    positions: Mapping[int, int] | None = None
    head: int | None = None

    def __post_init__(self) -> None:
        require_text(name=self.name)
        other: object = self.other
        if not isinstance(other, Trace):
            raise UsageError(f"other must be a trace, but is {reprlib.repr(other)}.")
        positions: object = self.positions
        if positions is not None and not isinstance(positions, Mapping):
            raise UsageError(
                "positions must map positions of this sentence to those of the other, but is "
                f"{reprlib.repr(positions)}."
            )

    def edits(self, pair: Pair) -> Edits:
        """See `Cause.edits`."""
        _require(self.name, dict.fromkeys({*pair.shapes} & {*self.other}, 1), "tensors")
        axes = self.other.node(self.name).axes
        places = [i for i, axis in enumerate(axes) if axis in ("src", "tgt", BOTH)]
        if len(places) != 1:
            raise UsageError(
                f"A patch needs a tensor with one axis of positions, but {self.name} has "
                f"({', '.join(axes)})."
            )
        axis = places[0]
        value = torch.from_numpy(self.other[self.name]).movedim(axis, 0)
        n_here = pair.shapes[self.name][axis]
        rest = [n for i, n in enumerate(pair.shapes[self.name]) if i != axis]
        if rest != [*value.shape[1:]]:
            raise UsageError(
                f"{self.name} of the other trace has a different width. Use a trace of this model."
            )
        heads = slice(None)
        if self.head is not None:
            if axes[0] != "head":
                raise UsageError(f"{self.name} has no axis of heads: leave out head.")
            head = within(self.head, len(self.other[self.name]), f"head of {self.name}")
            heads = slice(head, head + 1)
        chosen = self.positions
        if chosen is None:
            chosen = {i: i for i in range(min(n_here, len(value)))}
        for here, there in chosen.items():
            within(here, n_here, f"position of {self.name}")
            within(there, len(value), f"position of {self.name} of the other trace")
        return {self.name: _patched(value, chosen, axis + 1, heads)}


def _patched(value: Tensor, positions: Mapping[int, int], axis: int, heads: slice) -> Edit:
    """The edit of a patch.

    Args:
        value: the other sentence's tensor, positions first, then heads if there are any.
        positions: maps positions of this sentence to those of the other.
        axis: the axis of positions in the tensor.
        heads: the heads to patch.
    """
    n_done = 0

    def patched(tensor: Tensor) -> Tensor:
        nonlocal n_done
        new = tensor.clone()
        by_position = new.movedim(axis, 0)  # (length, batch, …)
        # A search computes the target position by position.
        for here, there in positions.items():
            if 0 <= here - n_done < len(by_position):
                by_position[here - n_done][:, heads] = value[there][heads].to(new)
        n_done += len(by_position)
        return new

    return patched


def heads_of(pair: Pair) -> dict[str, int]:
    """Maps the name of each attention with heads to their number, in the order of computation."""
    found = {}
    for name in pair.shapes:
        attention, _, last = name.rpartition(".")
        if last == "joined":
            found[attention] = pair.shapes[f"{attention}.query"][0]
    return found


def features_of(pair: Pair) -> dict[str, int]:
    """Maps the name of each feed-forward network to its number of features."""
    return {
        name.removesuffix(".activated"): shape[-1]
        for name, shape in pair.shapes.items()
        if name.endswith(".activated")
    }


def keys_of(pair: Pair) -> dict[str, int]:
    """Maps the name of each softmax attention to the number of positions that it can read."""
    return {
        name.removesuffix(".weights"): shape[-1]
        for name, shape in pair.shapes.items()
        # Linear attention has no scores, and computes no weights in a search.
        if name.endswith(".weights") and name.removesuffix("weights") + "scores" in pair.shapes
    }


def sublayers_of(pair: Pair) -> list[str]:
    """The names of all sublayers, in the order of computation."""
    found = []
    for name in pair.shapes:
        sublayer, _, last = name.rpartition(".")
        kind = sublayer.rpartition(".")[2]
        if last == "out" and not kind.startswith("around_") and not kind.isdigit():
            found.append(sublayer)
    return found


def layers_of(pair: Pair) -> list[str]:
    """The names of all layers with sublayers, in the order of computation."""
    layers = dict.fromkeys(sublayer.rpartition(".")[0] for sublayer in sublayers_of(pair))
    return [name for name in layers if {f"{name}.in", f"{name}.out"} <= pair.shapes.keys()]


def source_readings(pair: Pair, position: int, scale: float = 0.0) -> list[Position]:
    """A source position in every attention that reads the source.

    Args:
        pair: the sentence.
        position: source position, from 0.
        scale: 0 = masked.

    Raises:
        UsageError: the position is not a whole number from 0, or the scale not a finite number.
    """
    require_whole(position, "position", 0)
    require_number(scale, "scale")
    has_cross = any("cross_attention" in name for name in pair.shapes)
    return [
        Position(attention=attention, position=position, scale=scale)
        for attention in keys_of(pair)
        if not (has_cross and attention.startswith("decoder") and "self" in attention)
    ]


def require_causes(causes: object) -> None:
    """Refuse a value that is not a list of changes.

    Raises:
        UsageError: names the value.
    """
    if not isinstance(causes, Sequence) or not all(map(_is_cause, causes)):
        raise UsageError(
            "causes must be a list of changes, such as [Layer(name=…)], but is "
            f"{reprlib.repr(causes)}."
        )


def within(index: int, count: int, what: str) -> int:
    """Refuse an index that is not a whole number from 0 and below `count`.

    Raises:
        UsageError: names the index, as `what`, and its value.
    """
    given: object = index
    is_whole = isinstance(given, Integral) and not isinstance(given, bool)
    if not is_whole or not 0 <= index < count:
        raise UsageError(
            f"The {what} must lie between 0 and {count - 1}, but is {reprlib.repr(index)}."
        )
    return index


def _is_cause(value: object) -> bool:
    return isinstance(value, Cause) and not isinstance(value, type)


def _require(name: str, known: Mapping[str, int], what: str) -> None:
    if name not in known:
        if not known:
            raise UsageError(f"This model has no {what}.")
        near = get_close_matches(name, known, n=1, cutoff=0.0)
        raise UsageError(f"There are no {what} named {name}; did you mean {near[0]}?")
