"""The changes of docs/add-an-attention.md, made to a copy of heed, give an attention that works."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.test_code_blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "add-an-attention.md"

CHECKS = """
import sys
from pathlib import Path

import torch
import torch.nn.functional as F

import heed
from heed.errors import ConfigError
from heed.model.build import build_model, build_unfilled
from heed.model.config import ModelConfig
from heed.model.families import plan, stored_shapes
from heed.model.stages import Stages
from heed.model.trace import recording
from heed.model.variants import QKNormAttention

torch.manual_seed(1)
config = ModelConfig(
    src_vocab_size=17, tgt_vocab_size=17, d_model=12, n_heads=3, d_ff=16, n_encoder_layers=2,
    n_decoder_layers=2, attention="qk_norm",
)
model = build_model(config).eval()
assert [weight.name for weight in plan(config)] == list(model.state_dict())
assert {weight.name: weight.shape for weight in plan(config)} == {
    name: tuple(tensor.shape) for name, tensor in model.state_dict().items()
}
assert build_unfilled(config, "meta").embed_src.tokens.weight.is_meta

# The equation, written out for one head after the other.
attention = QKNormAttention(12, 3).double().eval()
x = torch.randn(1, 5, 12, dtype=torch.float64)
with torch.no_grad():
    attention.gain.copy_(torch.tensor([1.0, 2.0, 5.0]))
    weight, bias = attention.project_in.weight, attention.project_in.bias
    query, key, value = (x[0] @ weight.T + bias).split(12, dim=1)
    heads = []
    for head, gain in enumerate((1.0, 2.0, 5.0)):
        rows = slice(4 * head, 4 * head + 4)
        q = query[:, rows] / query[:, rows].norm(dim=1, keepdim=True)
        k = key[:, rows] / key[:, rows].norm(dim=1, keepdim=True)
        heads.append((gain * q @ k.T).softmax(dim=1) @ value[:, rows])
    expected = torch.cat(heads, dim=1) @ attention.project_out.weight.T + attention.project_out.bias
    assert torch.allclose(attention(x)[0], expected, atol=1e-12)

# With the cache, step by step, the same logits.
src, tgt = torch.randint(4, 17, (2, 6)), torch.randint(4, 17, (2, 7))
with torch.inference_mode():
    whole = model.teacher_forced(src, tgt)
    state = model.start(src)
    for position, tokens in enumerate(tgt.T):
        assert torch.allclose(model.step(state, tokens), whole[:, position], atol=1e-5)
    with recording(model) as seen:
        model.teacher_forced(src, tgt)
assert torch.allclose(seen["decoder.1.cross_attention.weights"].sum(-1), torch.ones(()))
scores = Stages(config).of("decoder.1.cross_attention.scores")
assert (scores.formula, scores.axes) == ("S = Q′ K′ᵀ / √d_k", ("head", "tgt", "src"))

print("the variant is right")
"""


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the page's changes."""
    folder = tmp_path_factory.mktemp("changed")
    shutil.copytree(ROOT / "src" / "heed", folder / "heed")
    file = None
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M):
        heading = re.match(r"\d\. .*: `src/(.*)`\n", part)
        file = folder / heading[1] if heading else None
        for code in re.findall(r"^```diff\n(.*?)^```$", part, flags=re.M | re.S):
            assert file, "a diff stands under a heading that names its file"
            lines = code.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            text = file.read_text(encoding="utf-8")
            assert text.count(old) == 1, f"{file.name} holds these lines once:\n{old}"
            file.write_text(text.replace(old, new), encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_three_files_are_changed() -> None:
    diffs = [block for block in blocks_of(PAGE) if block.language == "diff"]
    headings = re.findall(r"^## \d\. .*: `(src/.*)`$", PAGE.read_text(encoding="utf-8"), re.M)
    assert len(diffs) >= len(headings) == 3


def test_the_variant_computes_its_equation(changed: Path) -> None:
    assert "the variant is right" in run(changed, "-c", CHECKS)


def test_the_variant_is_trained_saved_opened_and_kept_from_the_engine(changed: Path) -> None:
    lines = [f"the {noun} is {word}" for noun in ("sun", "sea", "sky", "bird") for word in "abcde"]
    for name in ("s.en", "t.de"):
        (changed / name).write_text("\n".join(lines * 3) + "\n", encoding="utf-8")
    settings = ["model.attention=qk_norm", "model.d_model=16", "model.n_heads=2", "model.d_ff=16"]
    corpus = ["--src", "s.en", "--tgt", "t.de", "--source-lang", "en", "--target-lang", "de"]
    run(
        changed,
        *["-m", "heed", "train", *corpus, "--out", "run", "--max-steps", "5", "--preset", "tiny"],
        *[*settings, "data.keep_copies=true"],
    )
    run(changed, "-m", "heed", "translate", "-m", "run", "-o", "out.de", "the sun is a")
    assert (changed / "out.de").read_text(encoding="utf-8").count("\n") == 1
    refusal = run(changed, "-m", "heed", "quantize", "run", "--out", "small", code=1)
    assert "softmax attention" in refusal
