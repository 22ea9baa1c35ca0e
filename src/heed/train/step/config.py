"""Settings of training: optimizer, schedule, clock.

`recipe/choose.py` chooses values for a corpus and a time budget.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from heed.config import Range, check
from heed.errors import ConfigError

POLYNOMIALS = (
    (8.093373, -23.620454, 17.446171),
    (3.636586, -2.721927, 0.536546),
    (2.6613, -1.977154, 0.452616),
)
"""Coefficients (a, b, c) of successive polynomials a x + b x³ + c x⁵: together they map singular
values from 0.01 to 1 into 0.73 to 1.27, and leave weaker directions weak. More polynomials come
closer to 1 without better training. Source: Amsel et al. 2025, "The Polar Express", algorithm 1."""


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """The training run.

    Attributes:
        time_s: wall-clock seconds for the whole run, preparation and last validation included;
            None = until `max_steps` or early stopping.
        max_steps: optimizer steps at most; None = no limit.
        batch_tokens: most target positions of a batch, padding included.
        first_batch_tokens: batch size at the start, grown to `batch_tokens` over the first third
            of the run; None = `batch_tokens` from the start. Small batches learn more per token
            early on.
        accumulate: batches whose gradients are summed for one step.
        recompute: keep only the inputs of each layer and compute the rest again in the backward
            pass: several times less memory, a third more time, equal gradients.
        shard: each of several processes keeps only its part of weights, gradients and optimizer
            state: for a model that does not fit otherwise; steps are slower.
        optimizer: `muon` orthogonalizes the updates of matrices and uses AdamW for the rest
            (Jordan et al. 2024); `adamw` (Loshchilov and Hutter 2019); `adam` (Kingma and Ba 2015).
        learning_rate: peak rate of Adam or AdamW, also for the weights that Muon does not update
            (embeddings, biases, norms). With `schedule = paper` a factor on its rate.
        matrix_learning_rate: peak rate of Muon.
        matrix_every: steps between updates of Muon, which are larger by the same factor;
            orthogonalizing costs the same for any batch, so small batches need fewer updates.
        beta1: decay of Adam's first moment.
        beta2: decay of Adam's second moment.
        adam_eps: Adam's ε.
        momentum: Muon's momentum.
        weight_decay: share that hidden matrices lose in each step, times their rate (Loshchilov and
            Hutter 2019); with `adam` a part of the gradient instead; 0 = none.
        revive_features: raise the bias of each ReLU feature that fires nowhere in a batch by the
            rate, so that it fires again; without a gradient it would never learn again.
        clip_norm: gradients are scaled down to this global norm; 0 = never.
        schedule: `linear` and `cosine` reach zero at the end of the run, `trapezoid` holds the
            peak and then falls linearly to zero; `inverse_sqrt` and `paper` (section 5.3) never do.
        warmup_steps: steps over which the rate rises from zero.
        decay_share: share of the run over which `trapezoid` falls.
        label_smoothing: probability spread over the vocabulary (section 5.4).
        ema_decay: exponential average of the weights, used for validation and as the result;
            0 = none.
        average_checkpoints: number of last checkpoints averaged into the result; 0 or 1 = none.
        patience: validations without a better score after which training stops; 0 = never.
        metric: the score that decides which validation is better.
        validations: how often the run validates, spread evenly over a budget of time or steps.
        validate_every: steps between validations; overrides `validations`.
        validation_sentences: development sentences translated at each validation.
        checkpoint_every: steps between checkpoints; None = every `checkpoint_every_s`.
        checkpoint_every_s: seconds between checkpoints.
        keep_checkpoints: newest checkpoints kept on disk.
        first_embeddings: `cooccurrence` gives pieces that occur with the same others in the corpus
            similar embeddings (`start/cooccurrence.py`), and a Transformer's decoder matching first
            guesses (`start/guesses.py`); `word2vec` learns them from each side of the corpus by
            skip-gram; `random` is the paper's; anything else is a file of word vectors, in the text
            format of word2vec or GloVe, for the pieces that are words in it. All rows have the
            usual length. A run with a parent has the parent's.
        freeze_embeddings: the embeddings keep their first values; so does an output layer that is
            tied to them.
        parent: model folder whose weights and pieces the run starts from; "" = none.
        seed: decides initial weights, batches, dropout and sampling.
        device: `auto`, `cpu` or `cuda`.
        precision: `float32`; `bfloat16`; `bfloat16_products`: float32, but the factors of matrix
            products are rounded to bfloat16, which CPUs with AMX, or AVX-512 for bfloat16, multiply
            several times as fast, and small probabilities of a large vocabulary are sampled for
            the gradients (`step/loss.py`); `auto`: the fastest of these that the device has.
        threads: CPU threads; 0 = all cores.

    Raises:
        ConfigError: a value out of range.
    """

    time_s: Annotated[float | None, Range(1, 1e8)] = None
    max_steps: Annotated[int | None, Range(1, 1_000_000_000)] = None
    batch_tokens: Annotated[int, Range(1, 10_000_000)] = 2048
    first_batch_tokens: Annotated[int | None, Range(1, 10_000_000)] = None
    accumulate: Annotated[int, Range(1, 10_000)] = 1
    recompute: bool = False
    shard: bool = False
    optimizer: Literal["muon", "adamw", "adam"] = "muon"
    learning_rate: Annotated[float, Range(0, 1e3)] = 4e-3
    matrix_learning_rate: Annotated[float, Range(0, 1e3)] = 0.01
    matrix_every: Annotated[int, Range(1, 100)] = 1
    beta1: Annotated[float, Range(0, 0.9999)] = 0.9
    beta2: Annotated[float, Range(0, 0.99999)] = 0.98
    adam_eps: Annotated[float, Range(1e-20, 1)] = 1e-9
    momentum: Annotated[float, Range(0, 0.9999)] = 0.95
    weight_decay: Annotated[float, Range(0, 10)] = 0.0
    revive_features: bool = False
    clip_norm: Annotated[float, Range(0, 1e9)] = 1.0
    schedule: Literal["linear", "cosine", "trapezoid", "inverse_sqrt", "paper"] = "trapezoid"
    warmup_steps: Annotated[int, Range(0, 1_000_000_000)] = 100
    decay_share: Annotated[float, Range(0.001, 1)] = 0.5
    label_smoothing: Annotated[float, Range(0, 0.9)] = 0.1
    ema_decay: Annotated[float, Range(0, 0.999999)] = 0.0
    average_checkpoints: Annotated[int, Range(0, 1000)] = 0
    patience: Annotated[int, Range(0, 1_000_000)] = 0
    metric: Literal["bleu", "chrf", "loss", "accuracy"] = "chrf"
    validations: Annotated[int, Range(0, 1_000_000)] = 10
    validate_every: Annotated[int | None, Range(1, 1_000_000_000)] = None
    validation_sentences: Annotated[int, Range(0, 1_000_000)] = 500
    checkpoint_every: Annotated[int | None, Range(1, 1_000_000_000)] = None
    checkpoint_every_s: Annotated[float, Range(1, 1e8)] = 300.0
    keep_checkpoints: Annotated[int, Range(1, 1000)] = 2
    first_embeddings: str = "cooccurrence"
    freeze_embeddings: bool = False
    parent: str = ""
    seed: Annotated[int, Range(0, 2**31 - 1)] = 1
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "float32", "bfloat16", "bfloat16_products"] = "auto"
    threads: Annotated[int, Range(0, 1024)] = 0

    def __post_init__(self) -> None:
        check(self, "training")
        if not self.first_embeddings:
            raise ConfigError(
                "training.first_embeddings must be cooccurrence, word2vec, random or a file, but "
                "is empty."
            )
        if self.freeze_embeddings and self.shard:
            raise ConfigError(
                "training.freeze_embeddings and training.shard cannot be combined. Set one of "
                "them to false."
            )
