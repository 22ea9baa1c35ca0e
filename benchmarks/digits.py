# ruff: noqa: T201 (a script speaks to its terminal)
"""Handwritten digits, classified by an encoder of image patches (the Vision Transformer).

Usage: python benchmarks/digits.py [--seeds 1,2,3] [--epochs 60] [--threads 1]

scikit-learn's 1,797 digits have 8 × 8 pixels: 16 patches of 2 × 2. Of five parts each is once the
test set, and the model of the other four labels it. Training, its optimizer, schedule and loss are
heed's own.
"""

import argparse
import math
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from torch import Tensor

from heed.evaluate.labels import accuracy, interval
from heed.model.network import TorchNetwork
from heed.model.one_stack.config import EncoderConfig
from heed.model.one_stack.patches import build_patch_encoder, patches
from heed.train.step.config import TrainConfig
from heed.train.step.learning_rate import SCHEDULES, Moment
from heed.train.step.loss import output_cross_entropy
from heed.train.step.optimizer import Optimizer

PATCH = 2
N_LABELS = 10
BATCH = 64
SHAPE = EncoderConfig(
    src_vocab_size=N_LABELS,
    tgt_vocab_size=N_LABELS,
    d_model=64,
    n_heads=4,
    d_ff=128,
    n_layers=2,
    dropout=0.1,
    positions="learned",
    max_positions=16,
    tied="none",
    scale_embedding=False,
    pooling="mean",
)


def moved(images: Tensor) -> Tensor:
    """Each image `(1, height, width)` of a batch a little turned, slanted, resized and shifted."""

    def drawn(most: float) -> Tensor:
        return most * (2 * torch.rand(len(images)) - 1)

    angle, size, slant = drawn(math.radians(10)), 1 + drawn(0.1), drawn(0.15)
    cosine, sine = size * angle.cos(), size * angle.sin()
    # The width is 2 in these units: 0.125 is half a pixel.
    first = torch.stack([cosine, slant - sine, drawn(0.125)], dim=1)
    second = torch.stack([sine, cosine, drawn(0.125)], dim=1)
    grid = F.affine_grid(
        torch.stack([first, second], dim=1), list(images.shape), align_corners=False
    )
    return F.grid_sample(images, grid, align_corners=False)


def train(images: Tensor, labels: Tensor, *, epochs: int, seed: int) -> TorchNetwork:
    """An encoder that learned the labels `(n,)` of images `(n, 1, height, width)`."""
    torch.manual_seed(seed)
    model = build_patch_encoder(SHAPE, patch_width=PATCH * PATCH).train()
    n_steps = epochs * -(-len(images) // BATCH)
    settings = TrainConfig(max_steps=n_steps, weight_decay=0.1)
    optimizer = Optimizer(model, settings)
    for step, rows in zip(range(n_steps), shuffled(len(images)), strict=False):
        inputs = patches(moved(images[rows]), PATCH)
        loss, _ = output_cross_entropy(
            model(inputs, inputs)[:, 0],
            model.output.weight,
            labels[rows],
            smoothing=settings.label_smoothing,
        )
        (loss / len(rows)).backward()  # type: ignore[no-untyped-call]
        optimizer.clip()
        now = Moment(
            step=step + 1,
            share=step / n_steps,
            warmup_steps=settings.warmup_steps,
            decay_share=settings.decay_share,
            d_model=SHAPE.d_model,
        )
        optimizer.step(SCHEDULES[settings.schedule](now), step)
    return model.eval()


def shuffled(n: int) -> Iterator[Tensor]:
    """Batches of row numbers, every row once an epoch, without end."""
    while True:
        yield from torch.split(torch.randperm(n), BATCH)


@torch.inference_mode()
def label(model: TorchNetwork, images: Tensor) -> list[int]:
    """The best label of each image."""
    inputs = patches(images, PATCH)
    found: list[int] = model.logits(model(inputs, inputs)[:, 0]).argmax(dim=-1).tolist()
    return found


def cross_validated(seed: int, epochs: int, n_parts: int = 5) -> tuple[list[int], list[int]]:
    """Labels found and right labels of all digits, each found by a model that did not see it."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    parts = StratifiedKFold(n_parts, shuffle=True, random_state=seed)
    found = np.zeros(len(labels), dtype=int)
    for learned, held_out in parts.split(images, labels):
        model = train(images[learned], labels[learned], epochs=epochs, seed=seed)
        found[held_out] = label(model, images[held_out])
    return found.tolist(), labels.tolist()


def main() -> None:
    """Print accuracy with its 95 % interval, and the time it took, for each seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for seed in map(int, options.seeds.split(",")):
        started_at = time.process_time()
        found, right = cross_validated(seed, options.epochs)
        low, high = interval(accuracy, found, right)
        score, seconds = accuracy(found, right), time.process_time() - started_at
        print(f"seed {seed}: {score:.2f} % [{low:.2f}, {high:.2f}], {seconds:.0f} s of CPU time")


if __name__ == "__main__":
    main()
