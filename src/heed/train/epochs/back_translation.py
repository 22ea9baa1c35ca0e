"""Text in one language as training pairs: restored from gaps, and translated back by the model.

At the first epoch after a given share of the budget, the model translates the text into the other
language; from then on it also learns from these pairs, whose target is the original text. The loop
treats them as any other pairs of an epoch.
Source: Sennrich et al. 2016, "Improving NMT with Monolingual Data"; Caswell et al. 2019, "Tagged
Back-Translation": a tag in front of the source marks machine-made text.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.data.clean import CleanReport, amount, clean
from heed.data.prepare import BACK_TRANSLATED
from heed.data.prepared import DATA, Prepared
from heed.data.readers import Pair
from heed.data.store import Store, StoreWriter
from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import remove_temporaries
from heed.text.extend import control_id
from heed.train.epochs.denoise import DenoisedText, draw
from heed.train.recipe.folder import BACK_FILE, FACTS_FILE
from heed.train.recipe.recipe import Recipe
from heed.train.recipe.snapshot import make_translator
from heed.train.step.averages import using_weights
from heed.train.step.control import Paused
from heed.train.step.events import Report
from heed.train.step.trainer import EpochPairs, Trainer
from heed.translate.translator import Translator

TIME_SHARE = 0.1
"""Largest share of the time budget for back-translation."""

PORTION = 1024
N_SAMPLES = 2


class JoinedPairs:
    """Several sets of pairs, concatenated.

    Attributes:
        src_lengths: source tokens of each pair, `<eos>` included, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `<eos>` included, `(n_pairs)`.
    """

    def __init__(self, parts: Sequence[EpochPairs]) -> None:
        self._parts = parts
        self._ends = np.cumsum([len(part.src_lengths) for part in parts])
        self.src_lengths: NDArray[Any] = np.concatenate([part.src_lengths for part in parts])
        self.tgt_lengths: NDArray[Any] = np.concatenate([part.tgt_lengths for part in parts])

    def src(self, index: int) -> NDArray[Any]:
        """Source ids of pair `index`, `(n_pieces)`."""
        part, number = self._place(index)
        return part.src(number)

    def tgt(self, index: int) -> NDArray[Any]:
        """Target ids of pair `index`, `(n_pieces)`."""
        part, number = self._place(index)
        return part.tgt(number)

    def _place(self, index: int) -> tuple[EpochPairs, int]:
        which = int(np.searchsorted(self._ends, index, side="right"))
        return self._parts[which], index - int(self._ends[which - 1] if which else 0)


class MonoPairs:
    """Epoch number → its pairs: those of the corpus, and those made from text in one language.

    Args:
        trainer: its clock decides when to back-translate, its model does it.
        data: the corpus.
        recipe: the amounts.
        out: the run folder.
        report: gets an event of what was made.
        should_stop: called after each step of a search; True ends the call with `Paused`.
    """

    def __init__(
        self,
        trainer: Trainer,
        data: Prepared,
        recipe: Recipe,
        out: Path,
        report: Report,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.trainer, self.data, self.recipe, self.report = trainer, data, recipe, report
        self.should_stop = should_stop
        self.folder = out / DATA
        tag = control_id(data.src_vocab, BACK_TRANSLATED)
        assert tag is not None, "a vocabulary for monolingual text has this tag"
        self._tag = tag
        self._corpus = trainer.pairs
        self._latest: tuple[int, EpochPairs] | None = None

    def __call__(self, epoch: int) -> EpochPairs:
        """The pairs of an epoch; may back-translate first.

        Raises:
            Paused: a request to stop came in the meantime. What was translated is discarded, and
                the same call starts over.
        """
        if self._latest is None or self._latest[0] != epoch:
            parts = [self._corpus(epoch), *self._denoised(epoch), *self._translated(epoch)]
            self._latest = epoch, JoinedPairs(parts)
        return self._latest[1]

    def _denoised(self, epoch: int) -> Iterator[EpochPairs]:
        config, vocab = self.recipe.data, self.data.src_vocab
        if not config.denoise:
            return
        for language, store in self.data.mono.items():
            yield DenoisedText(
                store,
                tag=vocab.language_id(language),
                mask_id=vocab.mask_id,
                at_most=round(config.denoise * self.data.report["train"]),
                seed=self.recipe.training.seed,
                epoch=epoch,
            )

    def _translated(self, epoch: int) -> Iterator[EpochPairs]:
        progress, group = self.trainer.progress, self.trainer.group
        config, vocab = self.recipe.data, self.data.src_vocab
        path = self.folder / FACTS_FILE
        is_due = progress.batch == 0 and self.trainer.share >= config.back_translate_at
        if config.back_translate and is_due and not path.exists():
            group.wait()  # until every process has found that there are none
            whole, is_paused = self.trainer.whole(), False
            if group.is_leader:
                try:
                    self._translate_back(whole, epoch)
                except Paused:
                    is_paused = True
            group.wait()
            if group.any(is_paused):
                raise Paused
        facts = parse_json(read_bytes(path), path) if path.exists() else {"from_epoch": epoch + 1}
        # Pairs made by a killed run for a later epoch are used from that epoch on.
        if facts["from_epoch"] > epoch:
            return
        if facts["from_epoch"] == epoch and progress.batch == 0:
            found = amount(facts["sentences"], "sentence"), amount(facts["pairs"], "more pair")
            text = f"{found[0]} translated back: {found[1]}"
            self.report({"kind": "note", "step": progress.step + 1, "text": text, **facts})
        yield Store.open(self.folder / BACK_FILE, vocab.hash, vocab.hash)

    def _translate_back(self, trainer: Trainer, epoch: int) -> None:
        """Write the pairs, then the facts about them."""
        vocab, mono = self.data.src_vocab, self.data.mono
        started_at, reading = time.monotonic(), CleanReport()
        limit_s = TIME_SHARE * (self.recipe.training.time_s or np.inf)
        samples: list[dict[str, str]] = []
        remove_temporaries(self.folder, (BACK_FILE, FACTS_FILE))
        with (
            using_weights(trainer.model, trainer.averaged),
            Store.create(self.folder / BACK_FILE, vocab.hash, vocab.hash) as store,
        ):
            translator = make_translator(trainer, self.data, self.recipe)
            trainer.model.eval()
            for number, language in enumerate(mono, start=1):
                until_s = started_at + limit_s * number / len(mono)
                pairs = clean(self._pairs(translator, language, until_s), self.recipe.data, reading)
                for pair in pairs:
                    if not self._add(store, pair):
                        reading.n_kept -= 1
                        reading.drop("too_many_pieces", pair)
                    elif len(samples) < number * N_SAMPLES:
                        samples.append({"src": pair.src, "tgt": pair.tgt})
            trainer.model.train()
        facts = {
            "from_epoch": epoch,
            "seconds": round(time.monotonic() - started_at, 1),
            "sentences": reading.n_read,
            "pairs": reading.n_kept,
            "dropped": reading.n_dropped,
            "samples": samples,
        }
        write_atomically(self.folder / FACTS_FILE, to_json(facts))

    def _pairs(self, translator: Translator, language: str, until_s: float) -> Iterator[Pair]:
        """Sentences of a language with their translations as sources, while there is time."""
        data, config = self.data, self.recipe.data
        other = data.source_lang if language == data.target_lang else data.target_lang
        store, at_most = data.mono[language], round(config.back_translate * data.report["train"])
        numbers = draw(
            np.arange(len(store)), at_most, self.recipe.training.seed, "translated back", language
        )
        for start in range(0, len(numbers), PORTION):
            if time.monotonic() >= until_s:
                return
            if self.should_stop():
                raise Paused
            ids = (store.tgt(int(number)).tolist() for number in numbers[start : start + PORTION])
            texts = [data.src_vocab.decode(row) for row in ids]
            found = translator(
                texts, target_lang=other, beam_size=1, is_wanted=lambda text: not self.should_stop()
            )
            if self.should_stop():  # some are not translated
                raise Paused
            for src, tgt in zip(found, texts, strict=True):
                yield Pair(
                    src, tgt, origin=f"mono {language}", source_lang=other, target_lang=language
                )

    def _add(self, store: StoreWriter, pair: Pair) -> bool:
        """Store a pair; False if it has too many pieces."""
        vocab = self.data.src_vocab
        tags = [vocab.language_id(pair.target_lang), self._tag]
        src_ids = [*tags, *vocab.encode(pair.src)]
        tgt_ids = vocab.encode(pair.tgt)
        is_short = max(len(src_ids), len(tgt_ids)) < self.recipe.data.max_length
        if is_short:
            store.add(src_ids, tgt_ids)
        return is_short
