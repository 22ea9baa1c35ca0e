# ruff: noqa: T201 (a script speaks to its terminal)
"""A package of Argos Translate, which LibreTranslate serves, out of a model of heed's.

    python benchmarks/argos.py write MODEL FOLDER
    PEER/bin/python benchmarks/argos.py install FOLDER PACKAGES [SENTENCES.onnx]
    PEER/bin/python benchmarks/argos.py translate FOLDER FILE

`write` is for heed's Python: the float32 weights, pieces and languages of a model folder as plain
files. `install` is for the peer's: the same weights as CTranslate2 rounds them to int8, as all
packages of Argos are, the same pieces, and a splitter of sentences. `translate` prints what
CTranslate2 writes with the float32 weights, a beam of five and Argos' score of a length, which
shows that the weights have arrived.

Argos splits with MiniSBD, which downloads a network from GitHub when it is first used. Where that
cannot be, the package holds a stand-in: a table in ONNX that never splits, so a text is one
sentence to both servers. It costs less than the network that it replaces, so LibreTranslate is a
little faster and smaller than with its own. Not here: running the server (`serve.py`).
"""

import json
import shutil
import string
import sys
import tempfile
from pathlib import Path
from typing import Any

import exports
import translators

PIECES, LANGUAGES, VOCABULARY = "pieces.json", "languages.json", "sentencepiece.model"
SPECIAL = {"<pad>": "<blank>"}
"""heed's name of a special piece → CTranslate2's."""
FEATURES = ["space_before", "capitalized", "numeric", "end_of_para", "start_of_para"]
"""What Stanza's English splitter, from which MiniSBD's comes, computes of each character."""


def write(model: Path, folder: Path) -> None:
    """Weights, pieces and languages of a model folder that holds float32 weights."""
    from safetensors.numpy import save_file

    from heed.bundle.bundle import load_bundle
    from heed.model.config import ModelConfig

    bundle = load_bundle(model)
    config = bundle.config
    if not (
        isinstance(config, ModelConfig)
        and (config.norm, config.activation, config.scale_embedding) == ("pre", "relu", True)
        and config.positions in ("sinusoidal", "sinusoidal_halves", "learned")
    ):
        raise SystemExit(f"{model} cannot be told in CTranslate2's terms: {config.summary()}")
    folder.mkdir(parents=True)
    weights = {name: bundle.weights[name].copy() for name in bundle.weights}
    for name in ("embed_tgt.tokens.weight", "output.weight"):  # a tied one may stand there once
        weights.setdefault(name, weights["embed_src.tokens.weight"].copy())
    save_file(weights, folder / translators.FLOATS)
    (folder / "config.json").write_text(json.dumps(config.to_dict()), "utf-8")
    vocab = bundle.src_vocab
    pieces = [SPECIAL.get(piece, piece) for piece in vocab.pieces(range(vocab.size))]
    (folder / PIECES).write_text(json.dumps(pieces), "utf-8")
    (folder / VOCABULARY).write_bytes(vocab.to_bytes())
    (folder / LANGUAGES).write_text(json.dumps([bundle.source_lang, bundle.target_lang]), "utf-8")


def install(folder: Path, packages: Path, sentences: Path | None) -> None:
    """The package of what `write` wrote, and one of the other direction.

    LibreTranslate asks the network for packages unless it finds two. The second is there to be
    found: nobody asks for it, and a model is opened when it is asked for.
    """
    source, target = json.loads((folder / LANGUAGES).read_text("utf-8"))
    spec = spec_of(folder, "int8")
    for one, other in ((source, target), (target, source)):
        package = packages / f"translate-{one}_{other}-1_0"
        (package / "minisbd").mkdir(parents=True)
        (package / "model").mkdir()
        shutil.copy(folder / VOCABULARY, package / VOCABULARY)
        about = {"package_version": "1.0", "argos_version": "1.10", "type": "translate"}
        about |= {"from_code": one, "from_name": one, "to_code": other, "to_name": other}
        (package / "metadata.json").write_text(json.dumps(about), "utf-8")
        if sentences:
            shutil.copy(sentences, package / "minisbd" / sentences.name)
        else:
            save_splitter(package / "minisbd" / "never.onnx")
        if one == source:
            spec.save(str(package / "model"))


def spec_of(folder: Path, kind: str) -> Any:
    """What `write` wrote, as CTranslate2 describes a model."""
    return exports.ctranslate2_spec(
        translators.read_config(folder),
        translators.read_weights(folder),
        tokens=json.loads((folder / PIECES).read_text("utf-8")),
        reads_eos=True,
        kind=kind,
    )


def translate(folder: Path, lines: Path) -> None:
    """Print the translations of a file by the exact weights."""
    import ctranslate2
    import sentencepiece

    vocab = sentencepiece.SentencePieceProcessor(model_file=str(folder / VOCABULARY))
    with tempfile.TemporaryDirectory() as model:
        spec_of(folder, "float32").save(model)
        translator = ctranslate2.Translator(model, intra_threads=1)
        sources = lines.read_text("utf-8").split("\n")[:-1]
        found = translator.translate_batch(
            [vocab.encode(source, out_type=str) for source in sources],
            beam_size=5,
            length_penalty=0.2,
        )
    for each in found:
        print(vocab.decode_pieces(each.hypotheses[0]))


def save_splitter(path: Path) -> None:
    """The stand-in: scores of `inside a token`, its end and a sentence's end for each character."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper, save

    units = ["<PAD>", "<UNK>", *string.printable]
    inside = np.tile(np.array([1, 0, 0], np.float32), (len(units), 1))
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "units"], ["scores"])],
        "never",
        [
            helper.make_tensor_value_info("units", TensorProto.INT64, ["batch", "length"]),
            helper.make_tensor_value_info(
                "features", TensorProto.FLOAT, ["batch", "length", len(FEATURES)]
            ),
        ],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", "length", 3])],
        [numpy_helper.from_array(inside, "table")],
    )
    model: Any = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    ids = {unit: number for number, unit in enumerate(units)}
    about = {
        "lang_code": "en",
        "config": json.dumps({"feat_funcs": FEATURES}),
        "vocab": json.dumps({"_unit2id": ids, "_id2unit": units}),
        "lexicon": "null",
    }
    helper.set_model_props(model, about)
    save(model, path)


if __name__ == "__main__":
    first, second = Path(sys.argv[2]), Path(sys.argv[3])
    if sys.argv[1] == "write":
        write(first, second)
    elif sys.argv[1] == "translate":
        translate(first, second)
    else:
        install(first, second, Path(sys.argv[4]) if len(sys.argv) > 4 else None)
