"""How near to the machine's limits a translation comes: work counted, shares of the roofs, picture.

What a batch has to do follows from the model's shape: a multiply-add for each weight and row, a
byte (int8) or four (float32) for each weight and step, and the keys and values: two bytes a number
beside int8, as heed keeps them (CTranslate2 takes four), else four. Softmax, norms and search are
not counted, so the shares are lower bounds. Not here: measuring (`translate_speed.py`,
`machine.py`).
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from curves import BOTTOM, COLORS, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, svg
from machine import Peaks

Config = Mapping[str, Any]
Rates = Mapping[str, Mapping[str, Sequence[float]]]
"""Shape (`batch x beam`) → system → tokens a second, one for each round."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """What one batch takes at least.

    Attributes:
        macs: multiply-adds.
        bytes: that are read, where weights stay in no cache from step to step.
    """

    macs: float
    bytes: float

    @property
    def intensity(self) -> float:
        """Multiply-adds a byte."""
        return self.macs / self.bytes


def is_int8(system: str) -> bool:
    """Whether a system's weights are bytes."""
    return system.endswith("int8")


def sizes(shape: str) -> tuple[int, int]:
    """Batch and beam of a shape such as `32x4`."""
    batch, beam = map(int, shape.split("x"))
    return batch, beam


def step_weights(config: Config) -> int:
    """Weights that every step of the decoder reads, the output layer included."""
    d_model, d_ff = config["d_model"], config["d_ff"]
    layer = 6 * d_model**2 + 2 * d_model * d_ff
    return int(config["n_decoder_layers"] * layer + config["tgt_vocab_size"] * d_model)


def step_bytes(config: Config, *, is_rounded: bool) -> int:
    """The same in bytes: a cache of this size would hold them from step to step."""
    return step_weights(config) * (1 if is_rounded else 4)


def work(config: Config, shape: str, n_tokens: int, *, is_rounded: bool) -> Work:
    """Count a batch of sources of `n_tokens` and translations as long."""
    batch, beam = sizes(shape)
    rows, width = batch * beam, 2 * config["d_model"]
    n_decoders = config["n_decoder_layers"]
    encoder = config["n_encoder_layers"] * (width**2 + width * config["d_ff"])
    memory = n_decoders * width**2 // 2  # keys and values of the source
    step = step_weights(config)
    # A query meets a key, and its weight a value: `width` multiply-adds a position.
    n_earlier = n_tokens * (n_tokens + 1) // 2
    read_by_encoder = batch * n_tokens**2 * config["n_encoder_layers"]
    read_by_rows = rows * n_decoders * (n_earlier + n_tokens**2)
    # A source's keys and values are read once a step for all of its beam.
    kept = n_decoders * (rows * n_earlier + batch * n_tokens**2)
    return Work(
        macs=n_tokens * (batch * (encoder + memory) + rows * step)
        + width * (read_by_encoder + read_by_rows),
        bytes=(encoder + memory + n_tokens * step) * (1 if is_rounded else 4)
        + width * kept * (2 if is_rounded else 4),
    )


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What a system does in a second.

    Attributes:
        gmacs: billions of multiply-adds.
        gbs: billions of bytes that it would read without any cache for weights.
        intensity: multiply-adds a byte.
        peak_share: share of the machine's multiply-adds of its kind.
        read_share: share of what the machine reads from a set as large as a step's weights.
    """

    gmacs: float
    gbs: float
    intensity: float
    peak_share: float
    read_share: float


def reached(
    config: Config, shape: str, n_tokens: int, peaks: Peaks, system: str, tokens_per_s: float
) -> Reached:
    """From tokens a second to shares of the roofs."""
    is_rounded = is_int8(system)
    needed = work(config, shape, n_tokens, is_rounded=is_rounded)
    batches_per_s = tokens_per_s / (sizes(shape)[0] * n_tokens)
    gmacs, gbs = needed.macs * batches_per_s / 1e9, needed.bytes * batches_per_s / 1e9
    peak = peaks.int8_gmacs if is_rounded else peaks.float32_gmacs
    return Reached(
        gmacs=gmacs,
        gbs=gbs,
        intensity=needed.intensity,
        peak_share=gmacs / peak,
        read_share=gbs / peaks.read_gbs[step_bytes(config, is_rounded=is_rounded)],
    )


def share_table(config: Config, n_tokens: int, peaks: Peaks, rates: Rates) -> str:
    """Markdown: for each system and shape the shares of its multiply-adds and of reading."""
    lines = [f"| share of multiply-adds, of reading | {' | '.join(rates)} |"]
    lines.append("|---|" + "--:|" * len(rates))
    for system in next(iter(rates.values())):
        cells = []
        for shape, found in rates.items():
            speed = statistics.median(found[system])
            at = reached(config, shape, n_tokens, peaks, system, speed)
            cells.append(f"{at.peak_share:.0%}, {at.read_share:.0%}")
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join(lines)


def peaks_in_words(peaks: Peaks) -> str:
    """One line for below the table."""
    read = ", ".join(
        f"{speed:,.1f} GB/s from {size / 1e6:,.0f} MB" for size, speed in peaks.read_gbs.items()
    )
    return (
        f"The machine: {peaks.int8_gmacs:,.1f} billion multiply-adds of int8 a second, "
        f"{peaks.float32_gmacs:,.1f} of float32; reads {read}."
    )


# ---- the picture

DECADES = (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
DOT, NAME_WIDTH = 5, 38
HALO = ' stroke="white" stroke-width="4" paint-order="stroke"'


@dataclass(frozen=True, kw_only=True)
class Axes:
    """From multiply-adds a byte and billions of them a second to places; both logarithmic."""

    least_intensity: float
    most_intensity: float
    least_gmacs: float
    most_gmacs: float

    def x(self, intensity: float) -> float:
        """From the left."""
        share = _share(intensity, self.least_intensity, self.most_intensity)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, gmacs: float) -> float:
        """From the top."""
        share = _share(gmacs, self.least_gmacs, self.most_gmacs)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _share(value: float, least: float, most: float) -> float:
    return math.log(value / least) / math.log(most / least)


def picture(config: Config, n_tokens: int, peaks: Peaks, rates: Rates, title: str) -> str:
    """Roofs for int8 as SVG, and below them a dot for each shape and int8 system."""
    places: dict[str, dict[str, Reached]] = {}
    for shape, found in rates.items():
        for system in filter(is_int8, found):
            speed = statistics.median(found[system])
            at = reached(config, shape, n_tokens, peaks, system, speed)
            places.setdefault(system, {})[shape] = at
    everywhere = [at for shapes in places.values() for at in shapes.values()]
    axes = Axes(
        least_intensity=min(at.intensity for at in everywhere) / 2,
        most_intensity=max(at.intensity for at in everywhere) * 1.6,
        least_gmacs=min(at.gmacs for at in everywhere) / 1.6,
        most_gmacs=peaks.int8_gmacs * 1.4,
    )
    parts = [_frame(axes, title), *_roofs(axes, config, peaks), *_stems(axes, places)]
    for (system, shapes), color in zip(places.items(), COLORS, strict=False):
        dots = [(axes.x(at.intensity), axes.y(at.gmacs)) for at in shapes.values()]
        parts += [f'<circle cx="{x}" cy="{y}" r="{DOT}" fill="{color}"/>' for x, y in dots]
        x, y = max(dots)
        parts.append(f'<text x="{x + 2 * DOT:g}" y="{y + 4:g}" fill="{color}">{system}</text>')
    return svg(parts)


def _roofs(axes: Axes, config: Config, peaks: Peaks) -> list[str]:
    """Reading the weights of a step sets the slope, multiplying the ceiling."""
    set_bytes = step_bytes(config, is_rounded=True)
    speed, peak = peaks.read_gbs[set_bytes], peaks.int8_gmacs
    first = max(axes.least_intensity, axes.least_gmacs / speed)
    corner = min(peak / speed, axes.most_intensity)
    left, low = axes.x(first), axes.y(speed * first)
    x, y = axes.x(corner), axes.y(speed * corner)
    right = axes.x(axes.most_intensity)
    angle = math.degrees(math.atan2(y - low, x - left))
    float32 = axes.y(peaks.float32_gmacs)
    path = f"M{left} {low}L{x} {y}H{right}"
    middle = f"{(left + x) / 2:g} {(low + y) / 2:g}"
    return [
        f'<path d="{path}" fill="none" stroke="#444" stroke-width="2"/>',
        f'<text x="{x + 8:g}" y="{y - 7:g}" fill="#444">multiplies int8: {peak:,.0f}</text>',
        f'<path d="M{x} {float32}H{right}" stroke="#999" stroke-dasharray="5 4"/>',
        f'<text x="{x + 8:g}" y="{float32 - 6:g}" fill="#777">'
        f"multiplies float32: {peaks.float32_gmacs:,.0f}</text>",
        f'<text transform="translate({middle}) rotate({angle:.1f})" dy="-8" text-anchor="middle"'
        f' fill="#444">reads {set_bytes / 1e6:,.0f} MB: {speed:,.1f} GB/s</text>',
    ]


def _stems(axes: Axes, places: Mapping[str, Mapping[str, Reached]]) -> list[str]:
    """The dots of a shape hang on one line; its name below, further down where two would meet."""
    found = []
    for shape in next(iter(places.values())):
        dots = [shapes[shape] for shapes in places.values()]
        heights = [axes.y(at.gmacs) for at in dots]
        found.append((axes.x(dots[0].intensity), min(heights), max(heights), shape))
    parts, last, free = [], 0.0, 0.0
    for x, top, bottom, shape in sorted(found):
        y = max(bottom + 20, free) if x - last < NAME_WIDTH else bottom + 20
        last, free = x, y + 15
        parts.append(f'<path d="M{x} {top}V{y - 12:g}" stroke="#bbb"/>')
        name = "{}×{}".format(*sizes(shape))
        parts.append(
            f'<text x="{x}" y="{y:g}" text-anchor="middle" font-size="12"{HALO}>{name}</text>'
        )
    return parts


def _frame(axes: Axes, title: str) -> str:
    return frame(
        title,
        "multiply-adds a byte of weights, keys and values",
        heights={v: axes.y(v) for v in DECADES if axes.least_gmacs <= v <= axes.most_gmacs},
        places={v: axes.x(v) for v in DECADES if axes.least_intensity <= v <= axes.most_intensity},
    )
