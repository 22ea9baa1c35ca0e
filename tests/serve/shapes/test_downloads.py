"""Translated files wait to be fetched, for a limited time, on a disk that may not answer."""

import asyncio
import gc
import os
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from tests.serve.conftest import Serve

from heed.disk.files import write_atomically
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.settings import Store, Work
from heed.serve.shapes import downloads as downloads_module
from heed.serve.shapes.downloads import FOLDER, UNFINISHED_S, Downloads, forget_files, keep_file
from heed.serve.shapes.stored import beside_store


def with_store(folder: Path, *, file_s: float = 60, timeout_s: float = 60) -> Service:
    """The settings of a service, which may be shorter than those that an operator can set."""
    store = SimpleNamespace(folder=str(folder), files=2, file_s=file_s)
    settings = SimpleNamespace(store=store, work=SimpleNamespace(timeout_s=timeout_s))
    return cast("Service", SimpleNamespace(settings=settings))


def files_in(folder: Path) -> list[str]:
    return [path.name for path in (folder / FOLDER).iterdir()]


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A disk that answers no write until this event."""
    answers = threading.Event()

    def write(path: Path, content: bytes) -> None:
        assert answers.wait(60)
        write_atomically(path, content)

    monkeypatch.setattr(downloads_module, "write_atomically", write)
    yield answers
    answers.set()


@pytest.mark.parametrize(
    ("path", "words"),
    [("/translate_file", "error"), ("/v2/document", "message")],
)
def test_an_upload_ends_in_time_although_the_disk_of_the_store_does_not_answer(
    serve: Serve, en_de: str, tmp_path: Path, disk: threading.Event, path: str, words: str
) -> None:
    client = serve(en_de, store=Store(folder=str(tmp_path)), work=Work(timeout_s=0.5))
    form = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE"}
    answer = client.post(path, files={"file": ("a.txt", b"Two dogs")}, data=form)
    assert answer.status_code == 504
    assert "not ready in time" in answer.json()[words]
    disk.set()


def test_a_file_that_is_stored_after_its_request_is_deleted_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: threading.Event
) -> None:
    monkeypatch.setattr(downloads_module, "LATE_S", 0.05)
    service = with_store(tmp_path, file_s=0.1, timeout_s=0.05)

    async def run() -> None:
        with pytest.raises(Refusal):
            await keep_file(service, "a.txt", b"a")
        assert files_in(tmp_path) == []
        disk.set()
        async with asyncio.timeout(60):
            while not files_in(tmp_path):
                await asyncio.sleep(0.01)
            while files_in(tmp_path):
                await asyncio.sleep(0.01)

    asyncio.run(run())


class _Upload:
    """Something to store, whose end can be seen."""


def test_what_was_given_up_before_its_turn_does_not_stay_in_memory(tmp_path: Path) -> None:
    """Else a disk that does not answer fills the memory with uploads."""
    answers, service = threading.Event(), with_store(tmp_path, timeout_s=0.1)

    async def ask(upload: object) -> None:
        with pytest.raises(Refusal):
            await beside_store(service, lambda _: answers.wait(60), upload)

    async def run() -> None:
        await asyncio.gather(*map(ask, range(8)))  # more than there are threads
        upload = _Upload()
        kept = weakref.ref(upload)
        await ask(upload)
        del upload
        gc.collect()
        assert kept() is None

    try:
        asyncio.run(run())
    finally:
        answers.set()


def test_a_file_is_deleted_when_its_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if no other file comes."""
    monkeypatch.setattr(downloads_module, "LATE_S", 0.05)
    service = with_store(tmp_path, file_s=0.1)

    async def run() -> None:
        kept = await keep_file(service, "a.txt", b"a")
        assert (tmp_path / FOLDER / kept).exists()
        async with asyncio.timeout(60):
            while (tmp_path / FOLDER / kept).exists():
                await asyncio.sleep(0.05)

    asyncio.run(run())


def test_files_of_an_earlier_process_are_deleted_when_their_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, they stayed until the next upload, whatever their age."""
    monkeypatch.setattr(downloads_module, "LATE_S", 0.05)
    store = with_store(tmp_path, file_s=0.2).settings.store
    asyncio.run(forget_files(store))  # there is no folder yet
    kept = [tmp_path / FOLDER / Downloads(store).keep(name, b"a") for name in ("a.txt", "b.txt")]
    os.utime(kept[0], (time.time() - 100,) * 2)

    async def run() -> None:
        forgetting = asyncio.create_task(forget_files(store))
        async with asyncio.timeout(60):
            while kept[0].exists():
                await asyncio.sleep(0.01)
            await forgetting

    asyncio.run(run())
    assert not kept[1].exists()


def test_files_of_a_key_do_not_push_out_those_of_others(tmp_path: Path) -> None:
    downloads = Downloads(Store(folder=str(tmp_path), files=4))

    def keep(owner: str, lock: str = "") -> str:
        name = downloads.keep("a.txt", owner.encode(), lock=lock, owner=owner)
        moment = 1 + len(list((tmp_path / FOLDER).iterdir())) + time.time() - 100
        os.utime(tmp_path / FOLDER / name, (moment, moment))
        return name

    first, lock = keep("anna"), "f" * 64
    locked = keep("anna", lock)
    many = [keep("ben") for _ in range(5)]
    assert [downloads.read(name) is not None for name in (first, locked)] == [True, True]
    assert [downloads.read(name) is not None for name in many] == [False] * 3 + [True] * 2
    assert downloads.find(locked.partition("-")[0], lock) == locked
    keep("")  # each has two, so the oldest of all is deleted
    assert downloads.read(first) is None


def test_a_file_that_vanishes_meanwhile_does_no_harm(tmp_path: Path) -> None:
    downloads = Downloads(Store(folder=str(tmp_path), files=2))
    downloads.keep("a.txt", b"a")
    # As a file that another process deletes: it has a name, and cannot be found.
    (tmp_path / FOLDER / "b.txt").symlink_to(tmp_path / "nothing")
    assert downloads.read(downloads.keep("c.txt", b"c")) == ("c.txt", b"c")


def test_a_file_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    downloads = Downloads(Store(folder=str(tmp_path), files=1))
    downloads.keep("a.txt", b"a")
    young, old = (tmp_path / FOLDER / f"b.txt.tmp-0123abc{n}" for n in range(2))
    young.touch()
    old.touch()
    os.utime(old, (time.time() - UNFINISHED_S - 1,) * 2)
    downloads.keep("c.txt", b"c")
    kept = sorted(path.name.partition(".")[2] for path in (tmp_path / FOLDER).iterdir())
    assert kept == ["c.txt", "txt.tmp-0123abc0"]
