"""A tiny model, servers of it, and a browser."""

import asyncio
import shutil
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from starlette.testclient import TestClient

from heed.bundle.bundle import Bundle, save_bundle
from heed.engine.native_beam import NativeBeam
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.serve.app import make_app
from heed.serve.run import make_service
from heed.serve.service import Service
from heed.serve.settings import ServeSettings
from heed.serve.watch.figures import Figures
from heed.text.languages import Directions
from heed.text.vocab import train_vocab
from heed.translate.translator import load

CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

SENTENCES = [
    "A man is riding a bike.",
    "Ein Mann fährt Fahrrad.",
    "Two dogs play in the snow.",
    "Zwei Hunde spielen im Schnee.",
]


def make_model(
    folder: Path,
    source_lang: str,
    target_lang: str,
    *,
    seed: int = 1,
    d_model: int = 16,
    target_langs: tuple[str, ...] = (),
    directions: Directions = (),
    **changes: Any,
) -> str:
    """Write a model folder; its weights are random, so its translations mean nothing."""
    import torch

    torch.manual_seed(seed)
    vocab = train_vocab(SENTENCES * 5, size=300, languages=target_langs)
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=d_model,
        n_heads=2,
        d_ff=d_model,
        n_encoder_layers=1,
        n_decoder_layers=1,
        **changes,
    )
    bundle = Bundle(
        config=config,
        weights={name: w.numpy() for name, w in build_model(config).state_dict().items()},
        src_vocab=vocab,
        tgt_vocab=vocab,
        source_lang=source_lang,
        target_lang=target_lang,
        target_langs=target_langs,
        directions=directions,
        decoding={"max_length": 8, "beam_size": 2},
    )
    save_bundle(folder, bundle)
    return str(folder)


@pytest.fixture(scope="session")
def en_de(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder, English to German."""
    return make_model(tmp_path_factory.mktemp("models") / "en-de", "en", "de")


@pytest.fixture(scope="session")
def de_en(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder, German to English."""
    return make_model(tmp_path_factory.mktemp("models") / "de-en", "de", "en", seed=2)


FOUR_WAYS: Directions = (("zh", "en"), ("en", "es"), ("en", "fr"), ("en", "zh"))


@pytest.fixture(scope="session")
def four_ways(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model folder with the directions of `heed demo`, two of them from a language it writes."""
    folder = tmp_path_factory.mktemp("models") / "demo"
    return make_model(
        folder, "", "", target_langs=("en", "es", "fr", "zh"), directions=FOUR_WAYS, seed=3
    )


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A self-signed certificate and its key."""
    folder = tmp_path_factory.mktemp("tls")
    paths = str(folder / "cert.pem"), str(folder / "key.pem")
    make_certificate(*paths)
    return paths


def make_certificate(path: str, key: str) -> None:
    """Write a new self-signed certificate and its key."""
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 "
        "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 "
        f"-out {path} -keyout {key}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)


def expire(path: str, text: str = "") -> None:
    """Write a certificate whose time is over; its signature is wrong, which servers do not check.

    Args:
        path: the certificate, which is replaced.
        text: another one to write there.
    """
    data = ssl.PEM_cert_to_DER_cert(text or Path(path).read_text())
    # Two times follow each other, each with its tag and length.
    place = data.index(b"\x17\x0d") + 15
    expired = data[: place + 2] + b"200102030405Z" + data[place + 15 :]
    Path(path).write_text(ssl.DER_cert_to_PEM_cert(expired))


Serve = Callable[..., TestClient]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """`serve(folder, …, limits=Limits(…))`: a client of a server in this process."""
    opened: list[tuple[TestClient, Callable[[], None]]] = []

    def start(*folders: str, **settings: object) -> TestClient:
        asked = ServeSettings(models=folders, **settings)
        figures = Figures() if asked.metrics.enabled else None
        service = make_service(asked, figures)
        app = make_app(service, figures=figures)
        client = TestClient(app, raise_server_exceptions=False)
        client.__enter__()
        opened.append((client, service.close))
        return client

    yield start
    for client, close in opened:
        client.__exit__(None, None, None)
        close()


def n_steps_after_leaving(
    prepare: Callable[[Service], Awaitable[Callable[[], Awaitable[object]]]],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> int:
    """The steps that a search computes if its client leaves during the first.

    Args:
        prepare: returns what the client then asks for.
        folder: the served model.
    """
    has_begun, has_left = threading.Event(), threading.Event()
    n_steps = 0

    def counted(compute: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            nonlocal n_steps
            n_steps += 1
            has_begun.set()
            assert has_left.wait(60)
            return compute(*arguments)

        return step

    async def ask_and_leave() -> None:
        service = make_service(ServeSettings(models=(folder,)))
        ask = await prepare(service)
        # The steps of a search are called from Python, or by the engine itself.
        for kind in (type(load(folder).model), NativeBeam):
            monkeypatch.setattr(kind, "step", counted(kind.step))
        asking = asyncio.ensure_future(ask())
        assert await asyncio.to_thread(has_begun.wait, 60)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        has_left.set()
        await asyncio.to_thread(service.close)  # waits for the threads

    asyncio.run(ask_and_leave())
    return n_steps


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window.

    It ends with its module: as long as it is there, this thread has an event loop, and no other
    test can run one.
    """
    if CHROMIUM is None:
        pytest.skip("there is no chromium here: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
