"""Data that clients store on the server, in one SQLite file: glossaries and suggestions.

Every call opens the file again, so threads and processes can share it.
"""

import json
import logging
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path

from heed.disk.files import make_directory
from heed.disk.home import home
from heed.errors import ConfigError, FormatError, HeedError
from heed.serve.refusal import Refusal
from heed.serve.settings import Store
from heed.serve.work.pools import call_aside

FILE = "store.sqlite"
OWN_USER_ONLY = 0o600
WAIT_S = 5.0
"""Seconds that a request waits for another process to finish writing."""
START_S = WAIT_S + 3.0
"""Seconds that the start waits for the disk, of which another process may be writing `WAIT_S`."""
SILENT = "its disk does not answer"
THREADS = ThreadPoolExecutor(4, thread_name_prefix="heed-store")
"""Threads of their own: if another program locks the file, or its disk does not answer, no other
work waits for it."""
NO_STORE = "no_store"
"""Code of the refusal if the file cannot be used."""
Pair = tuple[str, str]
"""The language codes of a direction, source and target."""
Terms = Mapping[str, str]
"""Maps terms to translations."""

_TO_VERSION_1 = (
    # The tables of version 0: one dictionary per glossary, in the same row.
    """
    create table if not exists glossaries (
        id text primary key, owner text not null, name text not null, source text not null,
        target text not null, created text not null, terms text not null
    )
    """,
    """
    create table if not exists suggestions (
        source text not null, target text not null, q text not null, s text not null
    )
    """,
    "alter table glossaries rename to monolingual",
    """
    create table glossaries (
        id text primary key, owner text not null, name text not null, created text not null
    )
    """,
    """
    create table dictionaries (
        glossary text not null, source text not null, target text not null, terms text not null,
        primary key (glossary, source, target)
    )
    """,
    "insert into glossaries select id, owner, name, created from monolingual order by rowid",
    "insert into dictionaries select id, source, target, terms from monolingual",
    "drop table monolingual",
)
_TO_VERSION_2 = ("alter table suggestions add column owner text not null default ''",)
_TO_VERSION_3: tuple[str, ...] = ()
"""Files of this version have the numbers of terms in `dictionaries`, and an index of them."""
_TO_VERSION_4 = (
    "drop index if exists sizes",
    # Beside `dictionaries`: a list would read all terms, and an update would write all of them.
    """
    create table counts (
        glossary text not null, source text not null, target text not null,
        n_terms integer not null, primary key (glossary, source, target)
    )
    """,
    """
    insert into counts select glossary, source, target, number_of_terms(terms) from dictionaries
    order by rowid
    """,
)
UPDATES = (_TO_VERSION_1, _TO_VERSION_2, _TO_VERSION_3, _TO_VERSION_4)
"""Statements that turn a file of each version into one of the next. A new file has version 0."""
VERSION = len(UPDATES)

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class GlossarySummary:
    """A glossary without its terms.

    Attributes:
        id: cannot be guessed.
        name: chosen by the client.
        created: time in UTC, ISO 8601.
        n_terms: number of terms of each direction.
    """

    id: str
    name: str
    created: str
    n_terms: Mapping[Pair, int]


@dataclass(frozen=True, kw_only=True)
class StoredGlossary:
    """A glossary that a client created.

    Attributes:
        id: cannot be guessed.
        name: chosen by the client.
        created: time in UTC, ISO 8601.
        dictionaries: the terms of each direction.
    """

    id: str
    name: str
    created: str
    dictionaries: Mapping[Pair, Terms]

    @property
    def summary(self) -> GlossarySummary:
        """The glossary without its terms."""
        n_terms = {pair: len(terms) for pair, terms in self.dictionaries.items()}
        return GlossarySummary(id=self.id, name=self.name, created=self.created, n_terms=n_terms)


def folder_of(settings: Store) -> Path:
    """The folder for the data of clients.

    Raises:
        ConfigError: no folder is given, and this user has no home folder.
    """
    return Path(settings.folder) if settings.folder else home() / "serve"


def check_store(settings: Store) -> None:
    """Open the file before any request, if a folder is given or the usual one has a file already.

    A file in the usual folder that cannot be used is only logged: the server may not need it.

    Raises:
        ConfigError: the given folder or the file in it cannot be used.
    """
    storage = Storage(settings)
    looking = call_aside(partial(_look_into, storage, is_given=bool(settings.folder)))
    reason: object
    try:
        with suppress(TimeoutError):
            looking.result(START_S)
        # Millions of terms of an older version take a while, but the disk answers.
        looking.result(None if storage.is_updating else 0)
    except TimeoutError:
        reason = SILENT
    except Refusal as refusal:
        reason = refusal.__cause__
    else:
        return
    if not settings.folder:
        log.warning("%s cannot be used: %s", folder_of(settings) / FILE, reason)
        return
    raise ConfigError(
        f"store.folder: {settings.folder} cannot be used: {str(reason).removesuffix('.')}. Name "
        "another folder, or make this one usable."
    )


def _look_into(storage: "Storage", *, is_given: bool) -> None:
    """Open the file and update it, if a folder is given or the usual one has a file already."""
    if is_given or storage.is_there():
        storage.summaries("")


class Storage:
    """Glossaries and suggestions of all clients.

    Args:
        settings: folder and limits.
        wait_s: seconds that a call waits for another process to finish writing.

    Attributes:
        is_updating: whether a call has begun to update a file of an older version.

    Every method raises `Refusal` (503) if the file cannot be used.
    """

    def __init__(self, settings: Store, *, wait_s: float = WAIT_S) -> None:
        self._settings = settings
        self._wait_s = wait_s
        self.is_updating = False

    def add_glossary(
        self, owner: str, name: str, dictionaries: Mapping[Pair, Terms]
    ) -> StoredGlossary:
        """Store a glossary.

        Raises:
            Refusal: there are too many, of this owner or of all.
        """
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        glossary = StoredGlossary(
            id=str(uuid.uuid4()),
            name=name,
            created=created.replace("+00:00", "Z"),
            dictionaries=dictionaries,
        )
        with self._open() as connection:
            connection.execute("begin immediate")
            if owner:  # else there are no keys
                limit = self._settings.glossaries_per_key
                _require_room_of(connection, "glossaries", owner, limit, "a key")
            _require_room(connection, "glossaries", self._settings.glossaries)
            row = (glossary.id, owner, name, glossary.created)
            connection.execute("insert into glossaries values (?, ?, ?, ?)", row)
            _write_dictionaries(connection, glossary)
        return glossary

    def summaries(self, owner: str) -> list[GlossarySummary]:
        """All glossaries of an owner, oldest first; their terms, perhaps millions, are not read."""
        with self._open() as connection:
            rows = connection.execute(_SUMMARIES, (owner,)).fetchall()
        found: dict[str, GlossarySummary] = {}
        for id, name, created, source, target, number in rows:
            n_terms = {**found[id].n_terms} if id in found else {}
            if number is not None:  # else it has no dictionaries
                n_terms[source, target] = number
            found[id] = GlossarySummary(id=id, name=name, created=created, n_terms=n_terms)
        return [*found.values()]

    def glossary(self, owner: str, id: str) -> StoredGlossary | None:
        """One glossary; None if the owner has no glossary with this id."""
        with self._open() as connection:
            return next(iter(_read(connection, _ONE, owner, id)), None)

    def change_glossary(
        self, owner: str, id: str, change: Callable[[StoredGlossary], StoredGlossary]
    ) -> StoredGlossary | None:
        """Replace the name and the dictionaries of a glossary, in one transaction.

        Args:
            owner: its owner.
            id: its id.
            change: returns the new glossary for the old one; if it raises, nothing is written.

        Returns:
            The new glossary; None if the owner has no glossary with this id.
        """
        with self._open() as connection:
            connection.execute("begin immediate")
            for glossary in _read(connection, _ONE, owner, id):
                changed = change(glossary)
                connection.execute(
                    "update glossaries set name = ? where id = ?", (changed.name, id)
                )
                _write_dictionaries(connection, changed)
                return changed
        return None

    def delete_glossary(self, owner: str, id: str) -> bool:
        """Delete a glossary; return whether it existed."""
        with self._open() as connection:
            found = connection.execute(
                "delete from glossaries where owner = ? and id = ?", (owner, id)
            )
            if found.rowcount:
                _delete_dictionaries(connection, id)
            return found.rowcount > 0

    def delete_glossaries_of(self, owners: Collection[str]) -> int:
        """Delete all glossaries of these owners; return their number."""
        if not owners or not self.is_there():
            return 0
        rows = [(owner,) for owner in owners]
        with self._open() as connection:
            connection.execute("begin immediate")
            found = connection.executemany("delete from glossaries where owner = ?", rows)
            for table in _TABLES:
                connection.execute(
                    f"delete from {table} where glossary not in (select id from glossaries)"
                )
            return found.rowcount

    def add_suggestion(self, owner: str, source: str, target: str, q: str, s: str) -> None:
        """Store a user's suggestion of a better translation.

        Raises:
            Refusal: there are too many, of this owner or of all.
        """
        with self._open() as connection:
            connection.execute("begin immediate")
            limit = self._settings.suggestions_per_client
            _require_room_of(connection, "suggestions", owner, limit, "a client")
            _require_room(connection, "suggestions", self._settings.suggestions)
            connection.execute(
                "insert into suggestions (source, target, q, s, owner) values (?, ?, ?, ?, ?)",
                (source, target, q, s, owner),
            )

    def is_there(self) -> bool:
        """Whether there is a file."""
        with suppress(HeedError, OSError):
            return (folder_of(self._settings) / FILE).exists()
        return False

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            folder = folder_of(self._settings)
            make_directory(folder)
            if not (folder / FILE).exists():
                (folder / FILE).touch(mode=OWN_USER_ONLY)
            with closing(sqlite3.connect(folder / FILE, timeout=self._wait_s)) as connection:
                if _version(connection) != VERSION:
                    self.is_updating = True
                    _update_schema(connection)
                with connection:
                    yield connection
        except (sqlite3.Error, OSError, HeedError) as error:
            sentence = "The server's store of glossaries and suggestions cannot be used now."
            raise Refusal(503, sentence, code=NO_STORE) from error


_SUMMARIES = """
select id, name, created, source, target, n_terms from glossaries
left join counts on glossary = id where owner = ?
order by created, glossaries.rowid, counts.rowid
"""
_TABLES = ("dictionaries", "counts")
"""Tables with a row for each dictionary."""
_ONE = "where owner = ? and id = ?"


def _update_schema(connection: sqlite3.Connection) -> None:
    # SQLite's own function for JSON is not in every build of it.
    connection.create_function("number_of_terms", 1, number_of_terms)
    with connection:
        connection.execute("begin immediate")
        version = _version(connection)  # another process may have updated it meanwhile
        if version > VERSION:
            raise FormatError(
                f"{FILE} has version {version}, of a newer heed; this one reads versions up to "
                f"{VERSION}. Install the newer heed again, or set store.folder to another."
            )
        for statement in chain.from_iterable(UPDATES[version:]):
            connection.execute(statement)
        connection.execute(f"pragma user_version = {VERSION}")


def number_of_terms(terms: str) -> int:
    """The number of terms in a JSON object of texts: a quarter of the quotes around texts.

    Parsing it would take three times as long.
    """
    return terms.replace("\\\\", "").replace('\\"', "").count('"') // 4


def _version(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("pragma user_version").fetchone()
    return int(version)


def _read(connection: sqlite3.Connection, which: str, *values: str) -> list[StoredGlossary]:
    glossaries = connection.execute(f"select id, name, created from glossaries {which}", values)
    return [
        StoredGlossary(
            id=id, name=name, created=created, dictionaries=_dictionaries(connection, id)
        )
        for id, name, created in glossaries.fetchall()
    ]


def _dictionaries(connection: sqlite3.Connection, id: str) -> dict[Pair, Terms]:
    rows = connection.execute(
        "select source, target, terms from dictionaries where glossary = ? order by rowid", (id,)
    )
    return {(source, target): json.loads(terms) for source, target, terms in rows}


def _write_dictionaries(connection: sqlite3.Connection, glossary: StoredGlossary) -> None:
    _delete_dictionaries(connection, glossary.id)
    insert = "insert into dictionaries (glossary, source, target, terms) values (?, ?, ?, ?)"
    for pair, terms in glossary.dictionaries.items():
        connection.execute(insert, (glossary.id, *pair, json.dumps(dict(terms))))
        count = (glossary.id, *pair, len(terms))
        connection.execute("insert into counts values (?, ?, ?, ?)", count)


def _delete_dictionaries(connection: sqlite3.Connection, id: str) -> None:
    for table in _TABLES:
        connection.execute(f"delete from {table} where glossary = ?", (id,))


def _require_room(connection: sqlite3.Connection, table: str, limit: int) -> None:
    (n_rows,) = connection.execute(f"select count(*) from {table}").fetchone()
    if n_rows >= limit:
        sentence = f"This server keeps at most {limit} {table}."
        raise Refusal(403, sentence, code="store_full")


def _require_room_of(
    connection: sqlite3.Connection, table: str, owner: str, limit: int, whose: str
) -> None:
    query = f"select count(*) from {table} where owner = ?"
    (n_rows,) = connection.execute(query, (owner,)).fetchone()
    if n_rows >= limit:
        sentence = f"This server keeps at most {limit} {table} of {whose}."
        raise Refusal(403, sentence, code="store_full")
