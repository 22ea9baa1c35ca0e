"""What clients leave on the server, in one SQLite file: glossaries and suggestions.

Every call opens the file anew, so that threads and processes share it.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from heed.disk.files import make_directory
from heed.disk.home import home
from heed.errors import HeedError
from heed.serve.refusal import Refusal
from heed.serve.settings import Store

FILE = "store.sqlite"
WAIT_S = 5.0
"""How long a write waits for one of another process."""
SCHEMA = """
create table if not exists glossaries (
    id text primary key, owner text not null, name text not null, source text not null,
    target text not null, created text not null, terms text not null
);
create table if not exists suggestions (
    source text not null, target text not null, q text not null, s text not null
);
"""


@dataclass(frozen=True, kw_only=True)
class StoredGlossary:
    """A glossary that a client created.

    Attributes:
        id: unguessable.
        name: given by the client.
        source: language code.
        target: language code.
        created: time in UTC, ISO 8601.
        terms: term → translation.
    """

    id: str
    name: str
    source: str
    target: str
    created: str
    terms: Mapping[str, str]


def folder_of(settings: Store) -> Path:
    """Where the server keeps what clients leave.

    Raises:
        ConfigError: none is given, and this user has no home folder.
    """
    return Path(settings.folder) if settings.folder else home() / "serve"


class Storage:
    """Glossaries and suggestions of all clients.

    Args:
        settings: where, and how much.

    Every method raises `Refusal` (503) if the file cannot be used.
    """

    def __init__(self, settings: Store) -> None:
        self._settings = settings

    def add_glossary(
        self, owner: str, name: str, source: str, target: str, terms: Mapping[str, str]
    ) -> StoredGlossary:
        """Keep a glossary.

        Raises:
            Refusal: there are too many.
        """
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        glossary = StoredGlossary(
            id=str(uuid.uuid4()),
            name=name,
            source=source,
            target=target,
            created=created.replace("+00:00", "Z"),
            terms=dict(terms),
        )
        row = (glossary.id, owner, name, source, target, glossary.created, json.dumps(terms))
        with self._open() as connection:
            _require_room(connection, "glossaries", self._settings.glossaries)
            connection.execute("insert into glossaries values (?, ?, ?, ?, ?, ?, ?)", row)
        return glossary

    def glossaries(self, owner: str) -> list[StoredGlossary]:
        """All glossaries of an owner, the oldest first."""
        with self._open() as connection:
            rows = connection.execute(
                f"{_SELECT} where owner = ? order by created, rowid", (owner,)
            )
            return [_glossary(row) for row in rows]

    def glossary(self, owner: str, id: str) -> StoredGlossary | None:
        """One glossary; None if the owner has none of this id."""
        with self._open() as connection:
            rows = connection.execute(f"{_SELECT} where owner = ? and id = ?", (owner, id))
            return next((_glossary(row) for row in rows), None)

    def delete_glossary(self, owner: str, id: str) -> bool:
        """Whether there was one."""
        with self._open() as connection:
            found = connection.execute(
                "delete from glossaries where owner = ? and id = ?", (owner, id)
            )
            return found.rowcount > 0

    def add_suggestion(self, source: str, target: str, q: str, s: str) -> None:
        """Keep what a person thinks a better translation.

        Raises:
            Refusal: there are too many.
        """
        with self._open() as connection:
            _require_room(connection, "suggestions", self._settings.suggestions)
            connection.execute(
                "insert into suggestions values (?, ?, ?, ?)", (source, target, q, s)
            )

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            folder = folder_of(self._settings)
            make_directory(folder)
            with closing(sqlite3.connect(folder / FILE, timeout=WAIT_S)) as connection:
                connection.executescript(SCHEMA)
                with connection:
                    yield connection
        except (sqlite3.Error, HeedError) as error:
            sentence = "The server's store of glossaries and suggestions cannot be used now."
            raise Refusal(503, sentence, code="no_store") from error


_SELECT = "select id, name, source, target, created, terms from glossaries"


def _glossary(row: tuple[str, str, str, str, str, str]) -> StoredGlossary:
    id, name, source, target, created, terms = row
    return StoredGlossary(
        id=id, name=name, source=source, target=target, created=created, terms=json.loads(terms)
    )


def _require_room(connection: sqlite3.Connection, table: str, limit: int) -> None:
    (n_rows,) = connection.execute(f"select count(*) from {table}").fetchone()
    if n_rows >= limit:
        sentence = f"This server keeps at most {limit} {table}."
        raise Refusal(403, sentence, code="store_full")
