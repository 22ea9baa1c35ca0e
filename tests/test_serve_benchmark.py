"""benchmarks/serve.py and its clients: what they send, count and write down."""

import itertools
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

from heed.bundle.bundle import Bundle, save_bundle
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.text.vocab import train_vocab

Scripts = dict[str, ModuleType]


class Echo(BaseHTTPRequestHandler):
    """Says what it was asked; 503 to `busy`, and hangs up on `bye`."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body == b'"bye"':
            self.close_connection = True
            return
        self.send_response(503 if body == b'"busy"' else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_an_answer_longer_than_a_packet_arrives_whole(scripts: Scripts, port: int) -> None:
    body = json.dumps("a man rides a bike " * 50_000).encode()
    http_load = scripts["http_load"]
    assert http_load.ask(port, http_load.request_of("/", body)) == (200, body)


def test_every_request_is_answered_refused_or_lost(scripts: Scripts, port: int) -> None:
    http_load = scripts["http_load"]
    asked = itertools.chain(['"fine"', '"busy"', '"bye"'], itertools.repeat('"fine"'))
    requests = (http_load.request_of("/", text.encode()) for text in asked)
    found = http_load.Load(port, requests, 3).finish(0)
    assert (len(found.latencies_s), found.refused, found.n_lost) == (1, [503], 1)
    assert 0 < found.latencies_s[0] <= found.wall_s


def test_clients_take_the_next_line_in_turn(scripts: Scripts) -> None:
    requests = scripts["serve"].requests_of(["a", "b", "c"], ("en", "de"), 2)
    bodies = [json.loads(each.partition(b"\r\n\r\n")[2]) for each in itertools.islice(requests, 3)]
    assert [body["q"] for body in bodies] == [["a", "b"], ["c", "a"], ["b", "c"]]
    assert (bodies[0]["source"], bodies[0]["target"]) == ("en", "de")


@pytest.mark.parametrize(("share", "value"), [(50, 50), (95, 95), (99, 99), (100, 100)])
def test_a_percentile_is_one_of_the_values(scripts: Scripts, share: int, value: int) -> None:
    values = list(range(100, 0, -1))
    assert scripts["serve"].percentile(values, share) == value
    assert scripts["serve"].percentile([7.0], share) == 7.0


def rounds(*speeds: float, lost: int) -> list[dict[str, Any]]:
    """What a server did in each round, at so many texts a second."""
    return [
        {
            "loads": {
                "64 × 1": {
                    "texts_per_s": speed,
                    "cpu_ms": 900 / speed,
                    "p50_ms": 60_000 / speed,
                    "p95_ms": 64_000 / speed,
                    "p99_ms": 70_000 / speed,
                    "client_share": 0.02,
                }
            },
            "health_s": 0.25,
            "first_s": 0.5,
            "idle_mb": 40.0,
            "memory_mb": 50.0,
            "lost": lost,
        }
        for speed in speeds
    ]


def test_the_report_has_medians_and_ratios(scripts: Scripts) -> None:
    results = {
        "rounds": {
            "heed": rounds(900, 1000, 1100, lost=0),
            "LibreTranslate": rounds(190, 200, 300, lost=31),
        },
        "offline": [{"texts_per_s": 1250.0, "cpu_ms": 0.8}],
        "same_share": 0.82,
        "cores": 1,
        "client_core": "the same core",
    }
    speed, delay, rest, words = scripts["serve"].report(results).split("\n\n")
    assert speed.splitlines()[2] == "| 64 × 1 | 1,000 | 200.0 | 5.0 | 80% | 0.90 | 4.50 | 2% |"
    assert delay.splitlines()[2] == "| 64 × 1 | 60.0 | 300.0 | 64.0 | 320.0 | 70.0 | 350.0 | 0.20 |"
    assert "| MB (PSS) after the load | 50 | 50 | 1.00 |" in rest
    assert rest.splitlines()[-1].endswith("lost on SIGTERM (the worst round) | 0 | 31 | |")
    assert words.startswith("`heed translate` on the same lines: 1,250 texts/s, 0.80 CPU ms a text")


def test_the_peer_gets_weights_pieces_and_languages(scripts: Scripts, tmp_path: Path) -> None:
    argos = scripts["argos"]
    vocab = train_vocab(["a man rides a bike", "ein Mann fährt Rad"], size=300)
    sizes = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size, "d_model": 16}
    sizes |= {"n_heads": 2, "d_ff": 24, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = ModelConfig(**sizes, norm="pre")
    weights = {name: value.numpy() for name, value in build_model(config).state_dict().items()}
    bundle = Bundle(
        config=config,
        weights=weights,
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang="en",
        target_lang="de",
    )
    save_bundle(tmp_path / "model", bundle)
    argos.write(tmp_path / "model", tmp_path / "plain")
    found = load_file(tmp_path / "plain" / "model.safetensors")
    assert all(np.array_equal(found[name], weights[name]) for name in weights)
    pieces = json.loads((tmp_path / "plain" / argos.PIECES).read_text("utf-8"))
    assert (pieces[0], pieces[1:]) == ("<blank>", vocab.pieces(range(1, vocab.size)))
    assert json.loads((tmp_path / "plain" / argos.LANGUAGES).read_text("utf-8")) == ["en", "de"]


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves"])
def test_a_widened_model_says_what_the_narrow_one_says(scripts: Scripts, positions: Any) -> None:
    sizes = {"src_vocab_size": 50, "tgt_vocab_size": 50, "d_model": 16, "n_heads": 2, "d_ff": 24}
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 2}
    narrow = ModelConfig(**sizes, **layers, norm="pre", positions=positions)
    wide = replace(
        narrow,
        **{"d_model": 64, "n_heads": 4, "d_ff": 48, "n_encoder_layers": 3, "n_decoder_layers": 3},
        positions="learned",
        max_positions=64,
    )
    chance = np.random.default_rng(1)
    weights = {
        name: chance.normal(0, 0.3, tuple(value.shape)).astype(np.float32)
        for name, value in build_model(narrow).state_dict().items()
    }
    tied = ("embed_tgt.tokens.weight", "output.weight")
    weights |= dict.fromkeys(tied, weights["embed_src.tokens.weight"])
    widened = scripts["widen"].widen(narrow, weights, wide)
    src, tgt = chance.integers(5, 50, (3, 9)), chance.integers(5, 50, (3, 11))
    said = [
        Engine(Network.of(config, numbers)).teacher_forced(src, tgt).all_log_probs()
        for config, numbers in ((narrow, weights), (wide, widened))
    ]
    # The same sums in another order, in float32.
    np.testing.assert_allclose(*said, atol=2e-4)


def test_a_model_without_int8_weights_is_not_measured(scripts: Scripts, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}", "utf-8")
    (folder / "manifest.json").write_text("{}", "utf-8")
    with pytest.raises(SystemExit, match="has no int8 weights: heed quantize"):
        scripts["serve"].main(["-m", str(folder), "--src", str(folder / "config.json")])


def test_a_model_that_ctranslate2_cannot_have_is_named(scripts: Scripts, tmp_path: Path) -> None:
    vocab = train_vocab(["a man rides a bike"], size=300)
    sizes = {"src_vocab_size": vocab.size, "tgt_vocab_size": vocab.size, "d_model": 16}
    sizes |= {"n_heads": 2, "d_ff": 24, "n_encoder_layers": 1, "n_decoder_layers": 1}
    config = ModelConfig(**sizes, norm="post")
    weights = {name: value.numpy() for name, value in build_model(config).state_dict().items()}
    bundle = Bundle(config=config, weights=weights, src_vocab=vocab, tgt_vocab=vocab)
    save_bundle(tmp_path / "model", bundle)
    with pytest.raises(SystemExit, match="cannot be told in CTranslate2's terms"):
        scripts["argos"].write(tmp_path / "model", tmp_path / "plain")
