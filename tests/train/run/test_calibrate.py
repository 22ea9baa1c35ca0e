"""The end of a run learns to rank and to doubt from one search of the development sentences."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.train.epochs.corpus import prepared
from tests.train.run.test_rerank import DEV, counts, sentence, some_letters, translated

from heed.bundle.lexicon import Lexicon
from heed.data.prepared import Prepared
from heed.decode.options import DecodeOptions
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.train.run import calibrate, rerank
from heed.translate.rerank import reranker_of
from heed.translate.search import Searcher
from heed.translate.translator import Translator


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    pairs = [(sentence(each), translated(each)) for each in some_letters(1500, 1)]
    return prepared(tmp_path_factory.mktemp("letters"), pairs, ("en", "fr"), keep_duplicates=True)


def translator(data: Prepared) -> Translator:
    torch.manual_seed(1)
    sizes: Any = {"src_vocab_size": data.src_vocab.size, "tgt_vocab_size": data.tgt_vocab.size}
    few: Any = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1}
    network = build_model(ModelConfig(**sizes, **few, n_decoder_layers=1)).eval()
    return Translator(
        TorchDecodable(network, torch.device("cpu")),
        data.src_vocab,
        data.tgt_vocab,
        options=DecodeOptions(max_length=12),
        target_lang="fr",
    )


@pytest.mark.parametrize("least_gain", [-100.0, 100.0])
def test_development_sentences_are_searched_once_for_ranking_and_for_doubts(
    data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least_gain: float
) -> None:
    monkeypatch.setattr(rerank, "LEAST_GAIN", least_gain)
    stored: list[Lexicon] = []
    monkeypatch.setattr(calibrate, "save_lexicon", lambda run, lexicon: stored.append(lexicon))
    searched: Counter[tuple[tuple[int, ...], int]] = Counter()
    decode = Searcher.decode

    def counting(
        self: Searcher, parts: Any, options: DecodeOptions, *rest: Any, **ways: Any
    ) -> Any:
        searched.update((tuple(part.src_ids), options.min_length) for part in parts)
        return decode(self, parts, options, *rest, **ways)

    monkeypatch.setattr(Searcher, "decode", counting)
    training, model = counts(data), translator(data)
    calibrate._rank_anew(tmp_path, model, DEV, training)
    assert bool(stored) == (least_gain < 0)
    judgment = calibrate.learn_doubts(model, DEV, training)
    distinct = {pair.src for pair in DEV}
    assert len(searched) >= len(distinct) and set(searched.values()) == {1}

    plain = translator(data)
    if stored:
        plain.reranker = reranker_of(stored[0], data.src_vocab, data.tgt_vocab)
    assert calibrate.learn_doubts(plain, DEV, training).to_files() == judgment.to_files()
    assert min(searched.values()) == 2, "a translator alone searches by itself"
