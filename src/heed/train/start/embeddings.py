"""The first embeddings of a run, set by `training.first_embeddings`; and frozen ones."""

from collections.abc import Mapping

from torch import Tensor

from heed.data.lines import require_file
from heed.data.prepared import Prepared
from heed.data.progress import Report
from heed.errors import ConfigError, DataError
from heed.model.config import AnyConfig
from heed.model.families import plan
from heed.model.network import TorchNetwork
from heed.train.start.cooccurrence import cooccurrence_weights
from heed.train.start.from_file import file_weights
from heed.train.start.guesses import with_guesses
from heed.train.start.word2vec import word2vec_weights

WAYS = ("cooccurrence", "word2vec", "random")
"""All values except a file."""


def require_way(first_embeddings: str) -> None:
    """Refuse a value that is neither one of `WAYS` nor a file, before the corpus is read.

    Raises:
        ConfigError: there is no such file.
    """
    if first_embeddings in WAYS:
        return
    try:
        require_file(first_embeddings)
    except DataError as error:
        raise ConfigError(
            f"training.first_embeddings must be {', '.join(WAYS)} or a file of word vectors, but "
            f"{error}"
        ) from None


def first_weights(
    fresh: Mapping[str, Tensor],
    config: AnyConfig,
    data: Prepared,
    first_embeddings: str,
    report: Report,
    *,
    seed: int,
) -> dict[str, Tensor]:
    """The weights that training starts from: those of a fresh model, with its first embeddings.

    Args:
        fresh: weights by name.
        config: the model's shape.
        data: the corpus and its pieces.
        first_embeddings: the setting, not `random`.
        report: gets events of the progress.
        seed: of everything random.

    Raises:
        ConfigError: the vectors of a file do not fit the model or its pieces.
        DataError: the file is missing or malformed.
    """
    if first_embeddings == "cooccurrence":
        weights = cooccurrence_weights(fresh, config, data.train, seed=seed)
        return with_guesses(weights, config, data.train)
    if first_embeddings == "word2vec":
        return word2vec_weights(fresh, config, data.train, report, seed=seed)
    vocabs = data.src_vocab, data.tgt_vocab
    return file_weights(fresh, config, vocabs, first_embeddings, report)


def freeze(model: TorchNetwork) -> None:
    """Turn off the gradients of a model's embeddings."""
    for weight in model.plan:
        if weight.role == "table":
            model.get_parameter(weight.name).requires_grad_(False)


def frozen_in_words(config: AnyConfig) -> str:
    """The effect of `training.freeze_embeddings` on this model, in words."""
    tied = any(weight.role == "output" and weight.tied_to for weight in plan(config))
    remark = "the embeddings keep their initial values (training.freeze_embeddings)"
    if not tied:
        return remark
    return (
        f"{remark}; so does the output layer, which is the same table. With model.tied=none it "
        "has its own, which is trained"
    )
