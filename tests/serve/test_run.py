"""`heed serve` starts quickly, says what it serves, and refuses in words what it cannot."""

import logging
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.serve.program import Program

import heed
from heed.errors import ConfigError
from heed.serve import run
from heed.serve.access.keys import Keys
from heed.serve.run import forget_revoked, introduction, serve
from heed.serve.settings import Access, Glossary, Memory, ServeSettings, Store
from heed.serve.shapes import storage
from heed.serve.shapes.storage import FILE, Storage
from heed.serve.work.directions import Route


def test_it_says_address_directions_and_a_line_to_try(en_de: str, de_en: str) -> None:
    with Program("-m", en_de, "-m", de_en) as program:
        head = program.lines[:5]
        assert re.fullmatch(r"heed: http://127\.0\.0\.1:[1-9]\d*", head[0])
        assert head[1:3] == ["  en-de: en → de", "  de-en: de → en"]
        assert head[3].startswith(f"  try: curl {program.url}/translate ")
        assert program.translate("Two dogs.") == heed.load(en_de)("Two dogs.")
        assert program.stop() == 0


def test_it_says_that_requests_need_a_key() -> None:
    routes = [Route(source="en", target="de", model="en-de")]
    lines = introduction(routes, "http://host:5000", needs_key=True)
    assert lines[2] == "  requests need a key: heed serve keys add NAME"
    assert lines[3].startswith(
        "  try: curl http://host:5000/translate -H 'Authorization: Bearer KEY' --json '{"
    )
    assert len(introduction(routes, "http://host:5000", needs_key=False)) == 3


@pytest.mark.parametrize(
    ("source", "text"), [("en", "Hello"), ("en-GB", "Hello"), ("de", "TEXT"), ("eng", "TEXT")]
)
def test_the_line_to_try_has_a_text_in_its_source_language_or_a_placeholder(
    source: str, text: str
) -> None:
    routes = [Route(source=source, target="fr", model="model")]
    lines = introduction(routes, "http://host:5000", needs_key=False)
    assert lines[-1].endswith(f"""'{{"q": "{text}", "source": "{source}", "target": "fr"}}'""")


def test_what_no_translation_needs_is_not_imported_at_start() -> None:
    code = "import sys, heed.serve.run; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    found = done.stdout.decode().split()
    assert "heed.translate.translator" in found
    late = [
        "heed.documents.files",
        "heed.documents.markup",
        "heed.explain",
        "heed.text.disturb",
        "heed.vectors",
        "torch",
    ]
    assert not [name for name in found if name in late]


def test_it_is_live_at_once_and_ready_after_a_first_translation(en_de: str) -> None:
    with Program("-m", en_de, is_ready=False) as program:
        # The socket listens before the address is printed.
        assert program.ask("/health")[0] == 200
        program.wait_for("heed: ready.")
        assert program.ask("/ready")[0] == 200


BEGUN = """
import os, signal
from heed.serve import run
from heed.serve.settings import ServeSettings

def read_routes(models):
    os.kill(os.getpid(), signal.SIGHUP)
    raise SystemExit("it still reads")

run.read_routes = read_routes
run.serve(ServeSettings(models=("en-de",)), print)
"""


def test_sighup_does_not_end_a_server_that_still_reads_its_models() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGUN], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == "it still reads\n"


def test_pairs_of_no_clear_direction_are_told_at_the_start(en_de: str, de_en: str) -> None:
    settings = ServeSettings(models=(en_de, de_en), memory=Memory(files=("today.tsv",)))
    with pytest.raises(ConfigError, match=r"today\.tsv must name its direction"):
        serve(settings, print)


def test_terms_of_no_clear_direction_are_told_at_the_start(en_de: str, de_en: str) -> None:
    settings = ServeSettings(models=(en_de, de_en), glossary=Glossary(files=("terms.tsv",)))
    with pytest.raises(ConfigError, match=r"glossary\.files: terms\.tsv must name its direction"):
        serve(settings, print)


def test_a_program_does_not_start_with_a_wrong_glossary(en_de: str, tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dogs\n")
    with Program("-m", en_de, "--glossary", str(path), is_ready=False) as program:
        assert program.wait() == 1
        assert any(f"{path}: Line 1 of the glossary must" in line for line in program.lines)


def test_a_program_follows_a_file_of_pairs(en_de: str, tmp_path: Path) -> None:
    path = tmp_path / "today.tsv"
    path.write_text("Two dogs.\tHunde\n")
    with Program("-m", en_de, "--memory", str(path)) as program:
        assert program.translate("Two dogs.") == "Hunde"
        assert program.stop() == 0


def test_a_store_that_cannot_be_used_is_told_at_the_start(en_de: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "store"
    settings = ServeSettings(models=(en_de,), store=Store(folder=str(folder)))
    with pytest.raises(ConfigError, match=rf"folder: {folder} cannot be used: .*[^.]\. Name"):
        serve(settings, print)
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    settings = ServeSettings(models=(en_de,), store=Store(folder=str(tmp_path)))
    with pytest.raises(ConfigError, match="cannot be used: file is not a database"):
        serve(settings, print)


def test_glossaries_of_revoked_keys_are_deleted_at_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    for name in ("anna", "ben"):
        keys.add(name)
    keys.revoke("anna")
    keys.close()
    access = Access(keys="on", keys_file=str(keys.path))
    settings = ServeSettings(access=access, store=Store(folder=str(tmp_path)))
    forget_revoked(settings)
    assert not (tmp_path / FILE).exists()
    storage = Storage(settings.store)
    for owner in ("anna", "ben", "anna", ""):
        storage.add_glossary(owner, "a", {("en", "de"): {"dog": "Hund"}})
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            forget_revoked(settings)
    assert caplog.messages == ["2 glossaries of revoked keys were deleted"]
    assert [len(storage.summaries(owner)) for owner in ("anna", "ben", "")] == [0, 1, 1]
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        assert connection.execute("select count(*) from dictionaries").fetchone() == (2,)


def test_a_store_that_cannot_be_opened_does_not_hinder_the_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    keys.add("anna")
    keys.revoke("anna")
    keys.close()
    (tmp_path / FILE).write_bytes(b"no database at all" * 100)
    access = Access(keys="on", keys_file=str(keys.path))
    forget_revoked(ServeSettings(access=access, store=Store(folder=str(tmp_path))))
    assert "glossaries of revoked keys cannot be deleted: file is not a database" in caplog.text


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A function that waits until the test ends, as for a disk that does not answer."""
    may_end = threading.Event()
    for module in (run, storage):
        monkeypatch.setattr(module, "START_S", 0.1)
    yield lambda *_, **named: may_end.wait() and None
    may_end.set()


def test_a_disk_of_the_store_that_does_not_answer_ends_the_start(
    en_de: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: Callable[..., None]
) -> None:
    monkeypatch.setattr(storage, "make_directory", hanging)
    settings = ServeSettings(models=(en_de,), store=Store(folder=str(tmp_path)))
    with pytest.raises(
        ConfigError, match=rf"store\.folder: {tmp_path} cannot be used: its disk does not answer"
    ):
        serve(settings, print)


def test_a_disk_of_the_usual_store_that_does_not_answer_does_not_hinder_the_start(
    monkeypatch: pytest.MonkeyPatch, hanging: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Storage, "is_there", hanging)
    storage.check_store(Store())
    assert f"{FILE} cannot be used: its disk does not answer" in caplog.text


def test_an_update_of_the_store_may_take_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: Callable[..., None]
) -> None:
    update, is_over = storage._update_schema, threading.Event()

    def slowly(connection: sqlite3.Connection) -> None:
        is_over.wait(0.5)
        update(connection)
        is_over.set()

    monkeypatch.setattr(storage, "_update_schema", slowly)
    storage.check_store(Store(folder=str(tmp_path)))
    assert is_over.is_set()


def test_disks_of_keys_and_of_their_glossaries_that_do_not_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hanging: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    access = Access(keys="on", keys_file=str(keys.path))
    keys.close()
    monkeypatch.setattr(Storage, "delete_glossaries_of", hanging)
    forget_revoked(ServeSettings(access=access, store=Store(folder=str(tmp_path))))
    assert "revoked keys cannot be deleted: its disk does not answer" in caplog.text
    monkeypatch.setattr(Keys, "all", hanging)
    with pytest.raises(ConfigError, match=rf"disk of the file of keys {keys.path} does not answer"):
        forget_revoked(ServeSettings(access=access, store=Store(folder=str(tmp_path))))


def test_a_program_ends_although_the_disk_of_its_store_does_not_answer(
    en_de: str, tmp_path: Path
) -> None:
    hang = "import threading\nfrom heed.serve.shapes import storage\nstorage.START_S = 0.1\n"
    hang += "storage.make_directory = lambda folder: threading.Event().wait()"
    chosen = ("-m", en_de, "--set", f"store.folder={tmp_path}")
    with pytest.raises(AssertionError, match="cannot be used: its disk does not answer"):
        Program(*chosen, before=hang)
