"""One file for threads and processes, brought up to date from every older version."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.serve.program import Program

from heed.errors import ConfigError
from heed.serve.refusal import Refusal
from heed.serve.settings import Store
from heed.serve.shapes import storage as storage_module
from heed.serve.shapes.storage import (
    FILE,
    UPDATES,
    VERSION,
    Storage,
    StoredGlossary,
    check_store,
    number_of_terms,
)

PAIR = ("en", "de")
TERMS = {'a "bike"': "Rad, {x}", "größe": "size: \U0001f6b2", "": ""}


OF_VERSION_3 = (
    "alter table dictionaries add column n_terms integer not null default 0",
    f"update dictionaries set n_terms = {len(TERMS)} where terms != '{{}}'",
    "create index sizes on dictionaries (glossary, source, target, n_terms)",
)
"""What only files of this version have."""


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file itself, without heed."""
    with closing(sqlite3.connect(folder / FILE)) as connection, connection:
        yield connection


def write_old(folder: Path, version: int, *, n_glossaries: int = 2) -> None:
    """A file as a heed of this version left it; its first glossary has a second dictionary."""
    ids = list(map(str, range(n_glossaries)))
    with opened(folder) as connection:
        for statement in UPDATES[0][:2]:
            connection.execute(statement)
        for id in ids:
            row = (id, "", f"name {id}", *PAIR, "2026-11-01T00:00:00.000Z", json.dumps(TERMS))
            connection.execute("insert into glossaries values (?, ?, ?, ?, ?, ?, ?)", row)
        for statements in UPDATES[:version]:
            for statement in statements:
                connection.execute(statement)
        if version:
            connection.execute(
                "insert into dictionaries (glossary, source, target, terms) values (?, ?, ?, ?)",
                (ids[0], "de", "en", "{}"),
            )
        for statement in OF_VERSION_3 if version == 3 else ():
            connection.execute(statement)
        connection.execute(f"pragma user_version = {version}")


@pytest.mark.parametrize("version", range(VERSION))
def test_glossaries_of_every_older_version_are_kept_and_counted(
    tmp_path: Path, version: int
) -> None:
    write_old(tmp_path, version)
    storage = Storage(Store(folder=str(tmp_path)))
    first, second = storage.summaries("")
    assert first.n_terms == ({PAIR: 3, ("de", "en"): 0} if version else {PAIR: 3})
    assert (second.name, second.n_terms) == ("name 1", {PAIR: 3})
    kept = storage.glossary("", second.id)
    assert kept is not None
    assert kept.dictionaries == {PAIR: TERMS}
    added = storage.add_glossary("", "new", {PAIR: TERMS})
    assert storage.summaries("")[2] == added.summary


LIST = """
import sys
from heed.serve.settings import Store
from heed.serve.shapes.storage import Storage
print(len([each for each in Storage(Store(folder=sys.argv[1])).summaries("") if each.n_terms]))
"""


def test_processes_that_update_a_file_at_once_do_it_once(tmp_path: Path) -> None:
    write_old(tmp_path, 0, n_glossaries=200)
    processes = [
        subprocess.Popen([sys.executable, "-c", LIST, str(tmp_path)], stdout=subprocess.PIPE)
        for _ in range(4)
    ]
    assert [process.communicate()[0] for process in processes] == [b"200\n"] * 4


def test_an_update_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_old(tmp_path, 0)
    broken = (*UPDATES[0], "no statement")
    monkeypatch.setattr(storage_module, "UPDATES", (broken, *UPDATES[1:]))
    with pytest.raises(Refusal):
        Storage(Store(folder=str(tmp_path))).summaries("")
    monkeypatch.undo()
    assert len(Storage(Store(folder=str(tmp_path))).summaries("")) == 2


def test_a_file_of_a_newer_heed_is_refused_and_left_alone(tmp_path: Path) -> None:
    settings = Store(folder=str(tmp_path))
    Storage(settings).add_glossary("", "a", {PAIR: TERMS})
    with opened(tmp_path) as connection:
        connection.execute(f"pragma user_version = {VERSION + 1}")
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(Refusal) as caught:
        Storage(settings).summaries("")
    assert caught.value.status == 503
    with pytest.raises(ConfigError, match=f"has version {VERSION + 1}, of a newer heed"):
        check_store(settings)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_file_of_a_newer_heed_in_the_usual_folder_is_logged_and_the_server_starts(
    en_de: str, tmp_path: Path
) -> None:
    (tmp_path / "serve").mkdir()
    with opened(tmp_path / "serve") as connection:
        connection.execute(f"pragma user_version = {VERSION + 1}")
    with Program("-m", en_de, environment={"HEED_HOME": str(tmp_path)}) as program:
        (line,) = (each for each in program.lines if "newer heed" in each)
        assert f"{tmp_path}/serve/{FILE} cannot be used: {FILE} has version {VERSION + 1}" in line
        program.translate()


def test_an_update_writes_no_terms(tmp_path: Path) -> None:
    """Writing all terms again took 11 s of a store of 430 MB, before the server listened."""
    write_old(tmp_path, VERSION - 1, n_glossaries=500)
    with opened(tmp_path) as connection:
        connection.create_function("number_of_terms", 1, number_of_terms)
        before = connection.total_changes
        for statement in UPDATES[-1]:
            connection.execute(statement)
        assert connection.total_changes - before == 501  # a count of each dictionary


@pytest.mark.parametrize("sign", ['"', "\\", '\\"', '": "', '\\\\": "', "\u2028", "ß", ""])
def test_terms_are_counted_whatever_signs_they_have(sign: str) -> None:
    terms = {f"{place}{sign * place}{end}": sign * 3 + end for place in range(4) for end in "a:\\"}
    assert number_of_terms(json.dumps(terms)) == len(terms) == 12
    assert number_of_terms("{}") == 0


def test_what_is_deleted_is_not_counted_any_more(tmp_path: Path) -> None:
    storage = Storage(Store(folder=str(tmp_path)))
    added = storage.add_glossary("a", "a", {PAIR: TERMS})
    storage.add_glossary("b", "a", {PAIR: TERMS})
    assert storage.delete_glossary("a", added.id)
    assert storage.delete_glossaries_of(["b"]) == 1
    with opened(tmp_path) as connection:
        for table in ("dictionaries", "counts"):
            assert connection.execute(f"select count(*) from {table}").fetchone() == (0,)


def test_a_list_reads_no_page_of_terms(tmp_path: Path) -> None:
    """Terms fill pages that a list of numbers does not need, so that it stays fast."""
    settings = Store(folder=str(tmp_path))
    terms = {f"{number}": "x" * 100 for number in range(5000)}
    ids = [Storage(settings).add_glossary("", "a", {PAIR: terms}).id for _ in range(3)]
    with opened(tmp_path) as connection:
        plan = str(
            connection.execute(f"explain query plan {storage_module._SUMMARIES}", ("",)).fetchall()
        )
    assert "dictionaries" not in plan and "SEARCH counts USING INDEX" in plan
    assert {each.id: each.n_terms for each in Storage(settings).summaries("")} == {
        id: {PAIR: 5000} for id in ids
    }


def test_threads_that_open_a_new_store_at_once_all_keep_their_glossaries(tmp_path: Path) -> None:
    settings = Store(folder=str(tmp_path))

    def add(number: int) -> StoredGlossary:
        return Storage(settings).add_glossary("", f"{number}", {PAIR: {"a": "b"}})

    with ThreadPoolExecutor(8) as pool:
        added = list(pool.map(add, range(16)))
    found = Storage(settings).summaries("")
    assert {each.id for each in found} == {each.id for each in added}
    assert all(each.n_terms == {PAIR: 1} for each in found)


def test_terms_that_clients_add_at_once_are_all_kept(tmp_path: Path) -> None:
    settings = Store(folder=str(tmp_path))
    id = Storage(settings).add_glossary("", "a", {PAIR: {}}).id

    def add(number: int) -> None:
        def change(glossary: StoredGlossary) -> StoredGlossary:
            terms = {**glossary.dictionaries[PAIR], f"{number}": "x"}
            return StoredGlossary(
                id=id, name="a", created=glossary.created, dictionaries={PAIR: terms}
            )

        Storage(settings).change_glossary("", id, change)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(20)))
    found = Storage(settings).glossary("", id)
    assert found is not None
    assert len(found.dictionaries[PAIR]) == 20
    assert [each.n_terms for each in Storage(settings).summaries("")] == [{PAIR: 20}]
