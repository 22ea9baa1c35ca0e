"""A student's shape follows its teacher's, and so do its weights where they fit."""

from pathlib import Path
from typing import Any

import pytest

from heed.bundle.bundle import Bundle, load_bundle, save_bundle, save_int8
from heed.compress import student
from heed.compress.student import BATCH_TOKENS, RATE
from heed.engine.network import Network
from heed.engine.packed import to_arrays
from heed.errors import ConfigError
from heed.model.build import build_model
from heed.model.config import PRESETS, ModelConfig
from heed.text.vocab import train_vocab
from heed.train.recipe.asked import Asked
from heed.train.recipe.choose import FINE_TUNING_RATE
from heed.train.recipe.recipe import resolve

SHAPE: dict[str, Any] = {
    "d_model": 16,
    "n_heads": 2,
    "d_ff": 24,
    "n_encoder_layers": 3,
    "n_decoder_layers": 5,
}
SHALLOW = {**SHAPE, "n_decoder_layers": 3, "cross_from": "last"}


def student_settings(values: dict[str, Any], teacher: Path) -> Any:
    return student.student_settings(Asked(values), teacher).values


def make_teacher(folder: Path, **shape: Any) -> Path:
    vocab = train_vocab(["ein hund", "zwei hunde"] * 5, size=330)
    sizes: dict[str, Any] = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size}
    config = ModelConfig(**sizes, **SHAPE | shape)
    weights = {name: value.numpy() for name, value in build_model(config).state_dict().items()}
    bundle = Bundle(config=config, weights=weights, src_vocab=vocab, tgt_vocab=vocab)
    save_bundle(folder, bundle)
    return folder


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_teacher(tmp_path_factory.mktemp("teacher") / "model")


def test_it_is_its_teacher_with_two_thirds_of_the_decoder_layers(teacher: Path) -> None:
    asked = {"training": {"seed": 7}, "data": {"max_chars": 100}}
    settings = student_settings(asked, teacher)
    assert settings == {
        "model": SHALLOW,
        "training": {
            "seed": 7,
            "parent": str(teacher),
            "schedule": "linear",
            "learning_rate": RATE * FINE_TUNING_RATE * 0.008,
            "matrix_learning_rate": RATE * FINE_TUNING_RATE * 0.01,
            "batch_tokens": BATCH_TOKENS,
            "first_batch_tokens": BATCH_TOKENS,
        },
        "data": {"max_chars": 100},
    }


def test_heads_of_a_pruned_teacher_keep_their_width(tmp_path: Path) -> None:
    pruned = make_teacher(tmp_path / "pruned", n_heads=3, d_k=8, d_v=8)
    settings = student_settings({}, pruned)
    assert settings["model"] == {**SHALLOW, "n_heads": 3, "d_k": 8, "d_v": 8}
    assert settings["training"]["parent"] == str(pruned)


@pytest.mark.parametrize(
    ("model", "begins_with_weights"),
    [
        ({"n_encoder_layers": 5, "n_decoder_layers": 2}, True),
        ({"dropout": 0.4}, True),
        ({"d_model": 16}, True),
        ({"decoder_self": "ssru"}, True),
        ({"d_model": 8}, False),
        ({"d_ff": 32}, False),
        ({"n_heads": 4}, False),
        ({"tied": "output"}, False),
        ({"activation": "gelu"}, False),
    ],
)
def test_it_has_its_teachers_weights_if_it_differs_in_depth_alone(
    teacher: Path, model: dict[str, Any], begins_with_weights: bool
) -> None:
    settings = student_settings({"model": model}, teacher)
    assert settings["model"] == {**SHALLOW, **model}
    assert ("training" in settings) == begins_with_weights


def test_rates_and_batches_set_by_hand_stay(teacher: Path) -> None:
    training = {"schedule": "cosine", "optimizer": "adamw", "batch_tokens": 64}
    settings = student_settings({"training": training}, teacher)
    rate = RATE * FINE_TUNING_RATE * 0.001
    follows = {"learning_rate": rate, "first_batch_tokens": 64, "parent": str(teacher)}
    assert settings["training"] == {**training, **follows}
    settings = student_settings({"training": {"learning_rate": 0.1}}, teacher)
    assert settings["training"]["learning_rate"] == 0.1


def test_a_preset_names_another_shape(teacher: Path) -> None:
    settings = student_settings({"preset": "tiny", "model": {"n_heads": 8}}, teacher)
    assert settings == {"model": {**PRESETS["tiny"], "n_heads": 8, "cross_from": "last"}}
    like = {"d_model": 16, "n_heads": 2, "d_ff": 24}
    settings = student_settings({"preset": "student", "model": like}, teacher)
    assert settings["model"]["n_encoder_layers"] == 4
    assert settings["training"]["parent"] == str(teacher)


def test_a_teacher_whose_decoder_reads_layer_by_layer_has_no_weights_for_it(tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "model", n_decoder_layers=3, cross_from="same")
    assert student_settings({}, teacher) == {"model": {**SHALLOW, "n_decoder_layers": 2}}
    whole = {"n_decoder_layers": 3, "cross_from": "same"}
    assert "training" in student_settings({"model": whole}, teacher)


def test_a_rounded_teacher_has_no_weights_to_begin_with(teacher: Path, tmp_path: Path) -> None:
    bundle = load_bundle(teacher)
    network = Network.of(bundle.config, bundle.weights, is_quantized=True)
    save_int8(bundle, to_arrays(network), tmp_path / "small")
    settings = student_settings({}, tmp_path / "small")
    assert settings == {"model": SHALLOW}


def test_a_preset_that_is_none_is_left_to_the_check_of_all_settings(teacher: Path) -> None:
    asked = {"preset": {"x": 1}, "model": {"d_ff": 8}}
    assert student_settings(asked, teacher) == asked
    with pytest.raises(ConfigError, match="preset must be one of tiny, small"):
        resolve(Asked(asked))
