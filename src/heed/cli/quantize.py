"""`heed quantize`: int8 weights beside a model's own, or in a small folder by themselves.

Not here: rounding (`heed/engine/matrices.py`), files (`heed/bundle.py`), or scores.
"""

from pathlib import Path
from typing import Any

import click

from heed.cli.command import Session, command, options
from heed.cli.models import find_model
from heed.errors import UsageError

EXAMPLES = """
heed quantize run/
heed quantize run/ --src test.en --ref test.de
heed quantize run/ --out small/
"""

option = options("Options")


@command("quantize", "Round a model to int8: small and fast.", examples=EXAMPLES)
@click.argument("model")
@option("--out", str, "Write a model folder of its own, without float32.", metavar="FOLDER")
@option("--src", str, "Lines to translate before and after …", metavar="FILE")
@option("--ref", str, "… and their references: what does it cost?", metavar="FILE")
@option("--threads", click.IntRange(1, 1024), "CPU threads; default: all cores.")
@option("--layers", bool, "Also tell the error of every matrix.")
@click.pass_obj
def quantize(
    session: Session,
    /,
    model: str,
    out: str | None,
    src: str | None,
    ref: str | None,
    threads: int | None,
    layers: bool,
) -> None:
    """Round the weights of MODEL to int8, one scale an output channel.

    From then on `heed translate` and `heed.load` use them on a CPU; --dtype float32 gives the exact
    ones. A folder made with --out can be translated with, but not trained on.
    """
    if (src is None) != (ref is None):
        raise UsageError("Give --src and --ref together, or neither.")
    from heed.bundle import load_bundle, save_int8
    from heed.engine.network import Network, relative_errors
    from heed.engine.packed import to_arrays

    folder = find_model(model)
    bundle = load_bundle(folder, is_quantized=False)
    network = Network.of(bundle.config, bundle.weights, is_quantized=True)
    target = save_int8(bundle, to_arrays(network), None if out is None else Path(out))
    before, after = (_megabytes(bundle.path, "float"), _megabytes(target, "int8"))
    click.echo(f"{target}: {after:.1f} MB of int8 instead of {before:.1f} MB of float32")
    errors = relative_errors(network, bundle.weights)
    worst = max(errors, key=errors.__getitem__)
    mean = sum(errors.values()) / len(errors)
    click.echo(
        f"rounding error of a weight matrix, root mean square: {mean:.2%} on average, "
        f"{errors[worst]:.2%} at most ({worst})"
    )
    if layers:
        for role, error in errors.items():
            click.echo(f"  {role:<24} {error:.2%}")
    if src and ref:
        _compare(session, bundle.path, target, src, ref, threads)


def _megabytes(folder: Path | None, kind: str) -> float:
    from heed.bundle import AVERAGE, INT8, WEIGHTS

    assert folder is not None
    names = (INT8,) if kind == "int8" else (AVERAGE, WEIGHTS)
    found = [folder / name for name in names if (folder / name).exists()]
    return found[0].stat().st_size / 1e6


def _compare(
    session: Session, folder: Path | None, target: Path, src: str, ref: str, threads: int | None
) -> None:
    """Translate with both and print scores, difference and interval."""
    from heed.cli.evaluate import judge, read_all
    from heed.translate import load

    systems, lines, target_lang = {}, read_all(src), ""
    for name, path in (("float32", folder), ("int8", target)):
        assert path is not None
        translator = load(path, device="cpu", dtype=name, threads=threads)
        target_lang = translator.target_lang
        session.say(f"Translating {len(lines)} lines with {name} …")
        systems[name] = [found.text for found in translator.translate_stream(lines)]
    wishes: dict[str, Any] = {
        "metrics": "bleu,chrf",
        "tokenize": None,
        "lowercase": False,
        "resamples": 1000,
        "as_json": False,
    }
    judge(session, systems, [read_all(ref)], target_lang, wishes)
