"""`Keys`: the keys of clients, hashed in an SQLite file; a key is shown only once.

A key is heed_NAME_SECRET: NAME selects the row; SECRET is 32 random bytes, so a fast hash is safe.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from heed.errors import ConfigError

NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
"""Names of keys: they are part of keys, of `heed serve keys list` and of commands."""

FILE_NAME = "keys.sqlite"

THREAD = ThreadPoolExecutor(1, thread_name_prefix="heed-keys")
"""A thread of its own: if the disk of the keys does not answer, the rest of a server goes on."""
WAIT_S = 5.0
"""Seconds that a request waits for its key to be found."""

_KEY = re.compile(rf"heed_({NAME.pattern})_([A-Za-z0-9_-]{{43}})")
_NO_HASH = hashlib.sha256(b"").hexdigest()
_COLUMNS = "name, hash, created_at, expires_at, per_minute, chars, is_revoked"
_FIND = f"""
SELECT {_COLUMNS} FROM keys WHERE name = ?
UNION ALL SELECT '', ?, 0.0, NULL, 0, 0, 1
LIMIT 1
"""
"""Selects a name's key, or a dummy if there is none: a missing name takes just as long."""
_TABLE = """
CREATE TABLE IF NOT EXISTS keys (
    name TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    created_at REAL NOT NULL,
    expires_at REAL,
    per_minute INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    is_revoked INTEGER NOT NULL DEFAULT 0
) STRICT
"""

_CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Moves all changes into the file itself, so that a copy of it is complete."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """The stored facts about a key.

    Attributes:
        name: its name, such as the client's.
        created_at: seconds since 1970.
        expires_at: end of its validity; None = never.
        per_minute: texts per minute; 0 = no limit.
        chars: characters per request; 0 = the server's own limit.
        is_revoked: whether it is refused.
    """

    name: str
    created_at: float
    expires_at: float | None
    per_minute: int
    chars: int
    is_revoked: bool

    def is_valid(self, now: float) -> bool:
        """Whether it is accepted at this time."""
        return not self.is_revoked and (self.expires_at is None or now < self.expires_at)


class Keys:
    """The keys in a file, which is created if it is missing. For one thread at a time.

    Args:
        path: the file's path.

    Raises:
        ConfigError: it cannot be opened or written, or is not a file of keys.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._told(), ExitStack() as on_error:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            on_error.callback(self._file.close)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(_TABLE)
            self._file.execute(_CHECKPOINT)
            path.chmod(0o600)
            self._identity = self._identity_now()
            on_error.pop_all()

    def add(
        self, name: str, *, per_minute: int = 0, chars: int = 0, expires_at: float | None = None
    ) -> str:
        """Make a key and return it; only its hash is stored.

        Raises:
            ConfigError: the name is taken or invalid.
        """
        if not NAME.fullmatch(name):
            raise ConfigError(
                "A key's name must be at most 32 lower-case letters, digits and hyphens, but is "
                f"{name!r}."
            )
        secret = secrets.token_urlsafe(32)
        row = (name, _hash(secret), time.time(), expires_at, per_minute, chars)
        try:
            with self._told():
                self._file.execute(
                    "INSERT INTO keys (name, hash, created_at, expires_at, per_minute, chars) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )
                self._file.execute(_CHECKPOINT)
        except sqlite3.IntegrityError:
            raise ConfigError(
                f"There is a key {name} already. Choose another name: the name of a revoked key "
                "cannot be reused."
            ) from None
        return f"heed_{name}_{secret}"

    def revoke(self, name: str) -> None:
        """Refuse a key from now on.

        Raises:
            ConfigError: there is no such key.
        """
        with self._told():
            changed = self._file.execute("UPDATE keys SET is_revoked = 1 WHERE name = ?", (name,))
            self._file.execute(_CHECKPOINT)
        if not changed.rowcount:
            names = ", ".join(key.name for key in self.all()) or "none"
            raise ConfigError(f"There is no key {name!r}. Known: {names}.")

    def all(self) -> list[Key]:
        """Every key, oldest first."""
        with self._told():
            rows = self._file.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY created_at").fetchall()
        return [_key(row) for row in rows]

    def find(self, given: str) -> Key | None:
        """The stored key that equals a client's key, or None.

        Raises:
            ConfigError: the file cannot be used, or was deleted or replaced.
        """
        match = _KEY.fullmatch(given)
        name, secret = match.groups() if match else ("", "")
        with self._told():
            if self._identity_now() != self._identity:
                # SQLite reads the old file, in which revoked keys would be valid. The new one
                # cannot be opened beside it: they would share the names of the log and its index.
                raise ConfigError(
                    f"The file of keys {self.path} was replaced while it was in use. Start the "
                    "server again."
                )
            row = self._file.execute(_FIND, (name, _NO_HASH)).fetchone()
        # The steps are the same for every refusal, so that timing does not reveal the reason.
        is_right = hmac.compare_digest(row[1], _hash(secret))
        key = _key(row)
        is_valid = key.is_valid(time.time())
        return key if is_right and is_valid else None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _identity_now(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.Error, OSError) as error:
            raise ConfigError(
                f"The file of keys {self.path} cannot be used: {error}. {_remedy(error)}"
            ) from None


class KeyReader:
    """Finds keys beside the event loop.

    Args:
        keys: the keys.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._late: Future[Key | None] | None = None

    async def find(self, given: str) -> Key | None:
        """As `Keys.find`.

        Raises:
            ConfigError: as there; or the disk of the file does not answer.
        """
        if self._late is None or self._late.done():
            finding = THREAD.submit(self._keys.find, given)
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_S):
                    return await asyncio.wrap_future(finding)
            if finding.running():
                self._late = finding  # until it is done, others would only wait in vain
        raise ConfigError(f"The disk of the file of keys {self._keys.path} does not answer.")


def _remedy(error: Exception) -> str:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT:
        # A server that holds the old file keeps the index of its log, with the number of its pages.
        return "If it was replaced while a server used it, start the server again."
    return "Name another with access.keys_file."


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _key(row: tuple[object, ...]) -> Key:
    name, _, created_at, expires_at, per_minute, chars, is_revoked = row
    assert isinstance(name, str) and isinstance(created_at, float)
    assert isinstance(per_minute, int) and isinstance(chars, int)
    assert expires_at is None or isinstance(expires_at, float)
    return Key(
        name=name,
        created_at=created_at,
        expires_at=expires_at,
        per_minute=per_minute,
        chars=chars,
        is_revoked=bool(is_revoked),
    )
