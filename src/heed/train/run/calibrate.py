"""Learn when translations of a model are in doubt, and how probably they are right; store it.

A run does that at its end. `heed.translate.doubts.calibrate` says what is learned.
"""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

from heed.bundle.doubts import Judgment, save_judgment
from heed.bundle.find import find_model_folder
from heed.data.prepared import DATA, DEV_FILE, TRAIN_FILE, read_held_out
from heed.data.store import Store
from heed.engine.library import is_compiled
from heed.errors import ConfigError, DataError
from heed.translate.doubts.calibrate import (
    MOST_PAIRS,
    Pairs,
    Sources,
    calibrate,
    n_pairs_after,
)
from heed.translate.doubts.judge import Judge
from heed.translate.result import Translation
from heed.translate.translator import Translator, load


def learn_doubts(
    translator: Translator, pairs: Pairs, training: Store | None, target_lang: str | None = None
) -> Judgment:
    """Learn to judge the translations of a model.

    Args:
        translator: whose.
        pairs: development pairs.
        training: ids of the pairs that it was trained on; None = unknown.
        target_lang: of a model with several target languages, that of the pairs.

    Raises:
        DataError: there are too few development pairs.
    """

    def translate(texts: Sequence[str]) -> list[Translation]:
        return plain.translate(texts, target_lang=target_lang)

    def score(pairs: Pairs) -> list[Translation]:
        sources, targets = [src for src, _ in pairs], [tgt for _, tgt in pairs]
        return plain.judged(sources, targets, target_lang=target_lang)

    plain = without_judgment(translator)
    into = target_lang or translator.target_lang
    vocabs = translator.src_vocab, translator.tgt_vocab
    found = Sources(
        translate=translate, score=score, src_vocab=vocabs[0], tgt_vocab=vocabs[1], target_lang=into
    )
    return calibrate(found, pairs, training)


def without_judgment(translator: Translator) -> Translator:
    """The same translator, judged by rules alone and without second searches."""
    plain = copy(translator)
    plain.judge = Judge(None, translator.src_vocab, translator.tgt_vocab)
    plain.searches_again = False
    return plain


def development_pairs(run: Path, translator: Translator, target_lang: str | None = None) -> Pairs:
    """Development pairs of a run, at most `MOST_PAIRS`.

    Raises:
        ConfigError: the folder has none.
    """
    if not (run / DATA / DEV_FILE).is_file():
        raise ConfigError(f"{run} has no development pairs; name files: SRC TGT.")
    pairs = read_held_out(run / DATA, DEV_FILE)
    if translator.reader.target_langs:
        into = target_lang or translator.target_lang
        pairs = [pair for pair in pairs if pair.target_lang == into]
    return [(pair.src, pair.tgt) for pair in pairs[:MOST_PAIRS]]


def training_pairs(run: Path, translator: Translator) -> Store | None:
    """The pairs that the model of a run was trained on, if they are there.

    Raises:
        FormatError: they are damaged.
    """
    path = run / DATA / TRAIN_FILE
    if not path.is_file():
        return None
    return Store.open(path, translator.src_vocab.hash, translator.tgt_vocab.hash)


def calibrate_after_training(
    run: Path, threads: int | None = None, time_s: float | None = None
) -> str:
    """Learn the doubts of a finished run on its development pairs, and store them.

    Args:
        run: its folder.
        time_s: what the run was given; a short one gets fewer pairs. None = no limit.
        threads: CPU threads; None = as many as there are cores.

    Returns:
        What was done, as a sentence.

    Raises:
        RunError: the disk is full, read-only or not ours.
    """
    translator = _load(find_model_folder(run), threads)
    try:
        pairs = development_pairs(run, translator)[: n_pairs_after(time_s)]
        judgment = learn_doubts(translator, pairs, training_pairs(run, translator))
    except (ConfigError, DataError) as error:
        return f"Only rules will find doubtful translations. {error}"
    save_judgment(run, judgment)
    return (
        f"Learned on {judgment.n_pairs} development pairs which translations are doubtful; the "
        f"calibration error of their confidence is {judgment.error:.3f} there."
    )


def _load(folder: Path, threads: int | None) -> Translator:
    """The translator in int8, where that is compiled: it takes half of the time."""
    try:
        return load(folder, threads=threads, dtype="int8" if is_compiled() else "auto")
    except ConfigError:  # on a GPU, or a family that only torch computes
        return load(folder, threads=threads)
