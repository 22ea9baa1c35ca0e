"""The page as one file: what it holds is what a server answers, and it is not too large."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.serve.conftest import make_model

from heed.errors import RunError
from heed.explain.causes.effects import effect_on
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import Head
from heed.serve import export
from heed.serve.export import MAX_BYTES, write_page
from heed.serve.settings import Inside, ServeSettings
from heed.translate.translator import load

SENTENCE = "Two dogs play in the snow."


def written(path: Path, folder: str, text: str = SENTENCE, **more: Any) -> tuple[str, Any]:
    """The page and what it holds."""
    settings = ServeSettings(models=(folder,), inside=Inside(enabled="on"))
    n_bytes = write_page(path, settings, text, **more)
    page = path.read_text("utf-8")
    assert len(page.encode()) == n_bytes <= MAX_BYTES
    (held,) = re.findall(r'<script type="application/json" id="held">(.*?)</script>', page)
    return page, json.loads(held)


@pytest.fixture(scope="module")
def usual(en_de: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    """The page of `SENTENCE`, and what it holds."""
    return written(tmp_path_factory.mktemp("usual") / "page.html", en_de)


def numbers(held: Any, name: str) -> np.ndarray[Any, Any]:
    bits = np.frombuffer(gzip.decompress(base64.b64decode(held["numbers"])), "<f2")
    start, count = held["places"][name]
    return bits[start : start + count]


def test_a_page_holds_the_trace_with_numbers_of_16_bits(en_de: str, usual: tuple[str, Any]) -> None:
    _, held = usual
    trace = load(en_de).trace(SENTENCE)
    answer = held["answers"]["trace"]
    assert answer["translation"] == trace.translation
    places = [name for name in held["places"] if not name.startswith(("search/", "weights/"))]
    assert [node["name"] for node in answer["nodes"]] == [*trace] == places
    for name in trace:
        np.testing.assert_array_equal(numbers(held, name), trace[name].ravel().astype("<f2"))
    assert held["answers"]["positions"]["kind"] == "sinusoidal"
    assert held["answers"]["models"][0]["name"] == "en-de"


def test_a_given_translation_is_held(en_de: str, tmp_path: Path) -> None:
    _, held = written(tmp_path / "page.html", en_de, translation="Schnee", target="de")
    assert (held["forced"], held["answers"]["trace"]["translation"]) == ("Schnee", "Schnee")


def test_searches_and_causes_are_held(en_de: str, usual: tuple[str, Any]) -> None:
    _, held = usual
    first, greedy = held["searches"]
    translator = load(en_de)
    assert first["answer"]["translation"] == translator(SENTENCE)
    assert greedy["answer"]["strategy"] == "greedy"
    id = first["answer"]["id"]
    for number, step in enumerate(first["answer"]["steps"]):
        shares = np.exp(numbers(held, f"search/{id}/step/{number}").astype(np.float32))
        rows = shares.reshape(len(step["rows"]), -1, translator.tgt_vocab.size)[:, 0]
        np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-2)
    trace = held["answers"]["trace"]["id"]
    held_about = [key for key in held["answers"] if key.startswith(f"trace/{trace}/")]
    for part in ("importance?features=12", "lens?k=8", "attribute?method=erasure", "edit"):
        assert f"trace/{trace}/{part}" in held_about


def test_weights_of_the_sums_that_are_worked_out_are_held(
    en_de: str, usual: tuple[str, Any]
) -> None:
    _, held = usual
    translator = load(en_de)
    network = translator.traced.network
    trace = translator.trace(SENTENCE)
    # The first number of the second head's keys: a row of the matrix that makes all three.
    name = "encoder.0.self_attention.key"
    d_k = trace[name].shape[-1]
    matrix = next(each for each in trace.node(name).inputs if each.endswith(".weight"))
    row = (trace[name].shape[0] + 1) * d_k
    weight = network.get_parameter(matrix).detach().numpy()[row].astype("<f2")
    np.testing.assert_array_equal(numbers(held, f"weights/{matrix}?row={row}"), weight)
    bias = next(each for each in trace.node(name).inputs if each.endswith(".bias"))
    expected = network.get_parameter(bias).detach().numpy().astype("<f2")
    np.testing.assert_array_equal(numbers(held, f"weights/{bias}"), expected)
    ids = [translator.tgt_vocab.pieces(range(translator.tgt_vocab.size)).index("</s>")]
    output = next(each for each in trace.node("logits").inputs if each.endswith(".weight"))
    assert all(f"weights/{output}?row={id}" in held["places"] for id in ids)


@pytest.mark.parametrize("text", ["Press <b>{name}</b> .", "open https://a.b/c and 3 km ."])
def test_a_text_with_protected_spans_is_held(slots_model: Path, tmp_path: Path, text: str) -> None:
    """Their tokens are no pieces of the vocabulary, and their rows are those of slots."""
    translator = load(slots_model)
    _, held = written(tmp_path / "page.html", str(slots_model), text)
    trace = translator.trace(text)
    assert not {*trace.source_tokens} <= {*translator.src_vocab.pieces(range(300))}
    assert translator.twin is not None
    table = translator.twin.model.network.state_dict()["embed_src.tokens.weight"]
    for id_ in trace.source_ids:
        row = numbers(held, f"weights/embed_src.tokens.weight?row={id_}")
        np.testing.assert_array_equal(row, table[id_].numpy().astype("<f2"))


def test_what_follows_without_each_part_is_held(en_de: str, usual: tuple[str, Any]) -> None:
    _, held = usual
    translator = load(en_de)
    pair = Pair.of_trace(translator, translator.trace(SENTENCE))
    found = {json.dumps(one["change"]): one["answer"] for one in held["switched"]}
    change = {"kind": "head", "attention": "decoder.0.cross_attention", "head": 1, "scale": 0}
    effect = effect_on(pair, [Head(attention="decoder.0.cross_attention", head=1)])
    answer = found[json.dumps(change)]
    assert answer["new_translation"] == effect.new_translation
    np.testing.assert_allclose(answer["after"], effect.after, atol=1e-3)
    assert answer["likeliest"] == effect.likeliest
    read = [one["change"]["position"] for one in held["switched"] if "position" in one["change"]]
    assert read == [*range(len(pair.source_tokens))]


def test_where_distributions_do_not_fit_the_likeliest_pieces_are_held(
    en_de: str, usual: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, whole = usual
    search = whole["searches"][0]["answer"]
    name = "step/1"
    full = numbers(whole, f"search/{search['id']}/{name}").astype(np.float32)
    monkeypatch.setattr(export, "MAX_BYTES", len(page.encode()) - 16_000)
    monkeypatch.setattr(export, "N_LIKELIEST", n := 12)
    _, held = written(tmp_path / "page.html", en_de)
    assert held["likeliest"] == n
    id = held["searches"][0]["answer"]["id"]
    short = numbers(held, f"search/{id}/{name}")
    for row, both in enumerate(full.reshape(len(search["steps"][1]["rows"]), 2, -1)):
        own = short[row * (4 * n + 2) :][: 4 * n + 2]
        low, high = own[: 2 * n].view("<u2").astype(int).reshape(2, n)
        ids = low + high * 65536
        assert set(ids) == set(np.argsort(-both[0], kind="stable")[:n])
        np.testing.assert_array_equal(own[2 * n : 3 * n], both[0, ids])
        np.testing.assert_array_equal(own[3 * n : 4 * n], both[1, ids])
        shares = np.exp(own[2 * n : 3 * n].astype(np.float32)).sum()
        rest = np.exp(np.float32(own[4 * n])) * (both.shape[1] - n)
        assert shares + rest == pytest.approx(1, abs=1e-2)


def test_several_lines_are_one_batch(en_de: str, tmp_path: Path) -> None:
    lines = [SENTENCE, "A bike."]
    page, held = written(tmp_path / "page.html", en_de, text="\n".join(lines) + "\n")
    batch = load(en_de).trace(lines)
    answer = held["answers"]["trace"]
    assert [one["text"] for one in answer["sentences"]] == lines
    assert held["text"] == "\n".join(lines)
    for name in held["places"]:
        np.testing.assert_array_equal(numbers(held, name), batch[name].ravel().astype("<f2"))
    assert 'data-only="attention steps"' in page  # positions are those of one sentence


def test_sentences_are_held_as_the_page_reads_them(en_de: str, tmp_path: Path) -> None:
    """One in a line, without the blanks around it: else a page would ask for another sentence."""
    path = tmp_path / "page.html"
    page, held = written(path, en_de, text=f"\n {SENTENCE}\r\n\n", translation="\nSchnee \n.\n")
    assert (held["text"], held["forced"]) == (SENTENCE, "Schnee .")
    assert held["answers"]["trace"]["text"] == SENTENCE
    assert f"<title>{SENTENCE} · heed</title>" in page
    _, held = written(path, en_de, text=f"{SENTENCE}\r\n A bike.\r\n", translation=" Schnee.\r\n")
    assert (held["text"], held["forced"]) == (f"{SENTENCE}\nA bike.", "Schnee.\n")
    assert held["answers"]["trace"]["sentences"][0]["translation"] == "Schnee."


def test_no_text_ends_the_element_that_holds_it(en_de: str, tmp_path: Path) -> None:
    hostile = "</script><img src=x onerror=alert(1)> </title> \u2028 dogs"
    page, held = written(tmp_path / "page.html", en_de, text=hostile)
    assert held["text"] == hostile
    assert "<img" not in page
    assert page.count("</title>") == 1


def test_everything_is_in_the_file(usual: tuple[str, Any]) -> None:
    page, _ = usual
    assert "{{" not in re.sub(r"data:[^\"']*", "", page)
    assert not re.findall(r'(?:src|href)="(?!data:|#|docs)[^"]*"', page)
    (modules,) = re.findall(r'<script type="importmap">(.*?)</script>', page)
    sources = {
        name: base64.b64decode(url.partition(",")[2]).decode()
        for name, url in json.loads(modules)["imports"].items()
    }
    for name, source in sources.items():
        assert not re.findall(r"[\"'`]\./[\w-]+\.js", source), name
        imported = re.findall(r"[\"'](heed/[\w-]+\.js)[\"']", source)
        assert set(imported) <= sources.keys(), name


def test_a_file_of_a_model_without_positions_says_so(tmp_path: Path) -> None:
    folder = make_model(tmp_path / "model", "en", "de", positions="none")
    _, held = written(tmp_path / "page.html", folder)
    assert "has no table of positions" in held["answers"]["positions"]["error"]["sentence"]


def test_what_does_not_fit_is_left_out_attention_last(
    en_de: str, usual: tuple[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, everything = usual
    monkeypatch.setattr(export, "MAX_BYTES", len(whole.encode()) - 8000)
    page, held = written(tmp_path / "page.html", en_de)
    assert len(page.encode()) <= export.MAX_BYTES
    left_out = everything["places"].keys() - held["places"].keys()
    assert left_out
    assert not any(name.endswith("attention.weights") for name in left_out)
    nodes = [node["name"] for node in held["answers"]["trace"]["nodes"]]
    assert nodes == [name for name in held["places"] if name in nodes]


def test_a_sentence_that_cannot_be_traced_is_an_error(en_de: str, tmp_path: Path) -> None:
    settings = ServeSettings(models=(en_de,), inside=Inside(enabled="off"))
    with pytest.raises(RunError, match="does not show the inside of its models"):
        write_page(tmp_path / "page.html", settings, SENTENCE)
    assert not (tmp_path / "page.html").exists()
