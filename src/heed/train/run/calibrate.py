"""Learn which translations of a model are doubtful, and how likely they are right; store it.

A run does this at its end. `heed.translate.doubts.calibrate` describes the method.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from heed.bundle.doubts import Judgment, save_judgment
from heed.bundle.find import find_model_folder
from heed.bundle.lexicon import save_lexicon
from heed.data.links import Counted
from heed.data.prepared import DATA, DEV_FILE, TRAIN_FILE, read_held_out
from heed.data.readers import Pair, with_text
from heed.data.store import Store
from heed.engine.library import is_compiled
from heed.errors import ConfigError, DataError
from heed.train.run.rerank import learn_reranking
from heed.translate.doubts.calibrate import (
    MOST_PAIRS,
    Pairs,
    Sources,
    calibrate,
    n_pairs_after,
)
from heed.translate.doubts.judge import Judge
from heed.translate.doubts.words import counted
from heed.translate.given import read_translations
from heed.translate.kept import KeptSearches
from heed.translate.rerank import reranker_of
from heed.translate.result import Translation
from heed.translate.together import Folders
from heed.translate.translator import Translator, load


def learn_doubts(translator: Translator, pairs: list[Pair], training: Counted | None) -> Judgment:
    """Learn to judge the translations of a model.

    Args:
        translator: the translator of the model.
        pairs: development pairs, of which the first `MOST_PAIRS` are read; a pair without a target
            language has the model's first one.
        training: the pairs that it was trained on; None = unknown.

    Raises:
        DataError: there are too few development pairs.
    """
    pairs = with_text(pairs)[:MOST_PAIRS]
    plain = without_judgment(translator)
    has_several = bool(translator.reader.target_langs)
    langs = [pair.target_lang or None if has_several else None for pair in pairs]
    known = {lang or translator.target_lang for lang in langs}

    def translate(texts: Sequence[str], places: Sequence[int]) -> list[Translation]:
        return _by_language(
            [langs[place] for place in places],
            lambda rows, lang: plain.translate([texts[row] for row in rows], target_lang=lang),
        )

    def by_pairs(
        make: Callable[..., list[Translation]], pairs: Pairs, places: Sequence[int]
    ) -> list[Translation]:
        def made(rows: list[int], lang: str | None) -> list[Translation]:
            sources, targets = zip(*(pairs[row] for row in rows), strict=True)
            return make(sources, targets, target_lang=lang)

        return _by_language([langs[place] for place in places], made)

    def read(
        sources: Sequence[str], targets: Sequence[str], target_lang: str | None
    ) -> list[Translation]:
        return read_translations(plain.reader, (sources, targets), plain.reader.tag(target_lang))

    found = Sources(
        translate=translate,
        score=partial(by_pairs, plain.judged),
        read=partial(by_pairs, read),
        src_vocab=translator.src_vocab,
        tgt_vocab=translator.tgt_vocab,
        target_lang=known.pop() if len(known) == 1 else "",
    )
    return calibrate(found, [(pair.src, pair.tgt) for pair in pairs], training)


def _by_language(
    langs: Sequence[str | None], make: Callable[[list[int], str | None], list[Translation]]
) -> list[Translation]:
    """Translations of rows into the language of each, made for one language at a time."""
    found: dict[int, Translation] = {}
    for lang in dict.fromkeys(langs):
        rows = [row for row, own in enumerate(langs) if own == lang]
        found |= zip(rows, make(rows, lang), strict=True)
    return [found[row] for row in range(len(langs))]


def without_judgment(translator: Translator) -> Translator:
    """The same translator, with doubts found by rules only and without second searches."""
    plain = copy(translator)
    plain.judge = Judge(None, translator.src_vocab, translator.tgt_vocab)
    plain.searches_again = False
    return plain


def development_pairs(
    run: Path, translator: Translator, target_lang: str | None = None
) -> list[Pair]:
    """Development pairs of a run; of a model with several target languages, from each in turn.

    Args:
        run: its folder.
        translator: its model.
        target_lang: one of several target languages; None = all.

    Raises:
        ConfigError: the folder has none.
    """
    if not (run / DATA / DEV_FILE).is_file():
        raise ConfigError(f"{run} has no development pairs; name files: SRC TGT.")
    pairs = read_held_out(run / DATA, DEV_FILE)
    if not translator.reader.target_langs:
        return pairs
    langs = [target_lang] if target_lang else translator.reader.target_langs
    by_lang = [[pair for pair in pairs if pair.target_lang == lang] for lang in langs]
    return [pair for turn in zip_longest(*by_lang) for pair in turn if pair is not None]


def training_pairs(run: Path, translator: Translator) -> Store | None:
    """The pairs that the model of a run was trained on, if they are there.

    Raises:
        FormatError: they are damaged.
    """
    path = run / DATA / TRAIN_FILE
    if not path.is_file():
        return None
    return Store.open(path, translator.src_vocab.hash, translator.tgt_vocab.hash)


def counted_pairs(run: Path, translator: Translator) -> Counted | None:
    """The pairs of `training_pairs`, whose translations are counted when needed."""
    pairs = training_pairs(run, translator)
    vocabs = translator.src_vocab, translator.tgt_vocab
    return None if pairs is None else counted(pairs, *vocabs)


def calibrate_after_training(
    run: Path, threads: int | None = None, time_s: float | None = None
) -> list[str]:
    """Learn from a run's development pairs how to rank hypotheses and to doubt; store both.

    Args:
        run: its folder.
        threads: CPU threads; None = as many as there are cores.
        time_s: the time budget of the run; a short run uses fewer pairs. None = no limit.

    Returns:
        The results, as sentences.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    translator = load_quickly(find_model_folder(run), threads)
    said: list[str] = []
    try:
        pairs = development_pairs(run, translator)[: n_pairs_after(time_s)]
        training = counted_pairs(run, translator)
        said += _rank_anew(run, translator, pairs, training)
        judgment = learn_doubts(translator, pairs, training)
    except (ConfigError, DataError) as error:
        return [*said, f"Doubtful translations will be found by rules only. {error}"]
    save_judgment(run, judgment)
    return [
        *said,
        f"Learned on {judgment.n_pairs} development pairs which translations are doubtful; the "
        f"calibration error of their confidence is {judgment.error:.3f} there.",
    ]


def _rank_anew(
    run: Path, translator: Translator, pairs: list[Pair], training: Counted | None
) -> list[str]:
    """Let a translator rank hypotheses by word translations too, if that helps; the result."""
    # The translations that calibration looks at are among the hypotheses that are ranked here.
    translator.reranker = kept = KeptSearches()
    found = learn_reranking(without_judgment(translator), pairs[:MOST_PAIRS], training)
    kept.adds = False
    if found is None:
        return []
    if found.lexicon is None:
        return ["Word translations do not help to rank hypotheses."]
    save_lexicon(run, found.lexicon)
    kept.ranking = reranker_of(found.lexicon, translator.src_vocab, translator.tgt_vocab)
    (bleu, chrf), (new_bleu, new_chrf) = found.before, found.after
    return [
        "Word translations help to rank hypotheses: development BLEU "
        f"{bleu:.2f} → {new_bleu:.2f}, chrF {chrf:.2f} → {new_chrf:.2f}."
    ]


def load_quickly(folder: Folders, threads: int | None, **options: Any) -> Translator:
    """The translator of `open_quickly`."""
    return open_quickly(folder, threads, **options)[0]


def open_quickly(
    folder: Folders, threads: int | None, **options: Any
) -> tuple[Translator, Literal["int8", "auto"]]:
    """The translator in int8, if the engine is compiled: it takes half of the time.

    Args:
        folder: of the model; several models translate together.
        threads: CPU threads; None = as many as there are cores.
        options: further ones of `load`.

    Returns:
        The translator, and its `dtype` as `load` has it.
    """
    if is_compiled():
        with suppress(ConfigError):  # on a GPU, or a family that only torch computes
            return load(folder, threads=threads, dtype="int8", **options), "int8"
    return load(folder, threads=threads, **options), "auto"
