"""`heed serve keys`: add, list and revoke the keys of clients."""

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from heed.cli.command import Session, check_duration, command, options
from heed.cli.terminal import echo
from heed.errors import UsageError

if TYPE_CHECKING:
    from heed.serve.access.keys import Key, Keys

LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
"""No key expires later: Python has no dates after that year."""

key_option = options("Key")
keys_file_option = options("File")(
    "--keys-file",
    str,
    "SQLite file; default: the server's, keys.sqlite in heed's home folder.",
    metavar="FILE",
    envvar="HEED_SERVE_ACCESS_KEYS_FILE",  # the server's setting `access.keys_file`
)


@command("add", "Make a key.", examples="heed serve keys add weblate --per-minute 600")
@click.argument("name")
@key_option("--per-minute", click.IntRange(0), "Texts per minute; 0 = no limit.", default=0)
@key_option("--chars", click.IntRange(0), "Characters per request; 0 = no limit.", default=0)
@key_option(
    "--expires",
    str,
    "Refuse it after this time, such as 90d.",
    metavar="DURATION",
    callback=check_duration,
)
@keys_file_option
@click.pass_obj
def add(
    session: Session,
    /,
    name: str,
    per_minute: int,
    chars: int,
    expires: str | None,
    keys_file: str | None,
) -> None:
    """Make a key and print it. It is stored hashed and cannot be shown again."""
    from heed.config import parse_duration

    expires_at = time.time() + parse_duration(expires) if expires else None
    if expires_at is not None and expires_at > LATEST:
        raise UsageError(
            "--expires must end before the year 9999. Without it, a key does not expire."
        )
    keys = _open(keys_file)
    made = keys.add(name, per_minute=per_minute, chars=chars, expires_at=expires_at)
    keys.close()
    echo(made)
    session.say(f"Save it now: only its hash is stored, in {keys.path}.")


@command("list", "List keys.")
@key_option("--json as_json", bool, "Print JSON.")
@keys_file_option
@click.pass_obj
def list_keys(session: Session, /, as_json: bool, keys_file: str | None) -> None:
    """List names, limits and states of all keys; not the keys themselves."""
    keys = _open(keys_file)
    found = keys.all()
    keys.close()
    now = time.time()
    if as_json:
        rows = [{**vars(key), "is_valid": key.is_valid(now)} for key in found]
        echo(json.dumps(rows))
        return
    for key in found:
        echo("\t".join((key.name, _state(key, now), *_limits(key))))
    if not found:
        session.say(f"No keys yet in {keys.path}. Make one: heed serve keys add NAME")


@command("revoke", "Refuse a key.", examples="heed serve keys revoke weblate")
@click.argument("name")
@keys_file_option
@click.pass_obj
def revoke(session: Session, /, name: str, keys_file: str | None) -> None:
    """Refuse a key from now on; running servers refuse it at once, too."""
    keys = _open(keys_file)
    keys.revoke(name)
    keys.close()
    session.say(f"{name} is revoked.")


@click.group(
    "keys",
    commands=[add, list_keys, revoke],
    no_args_is_help=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
def keys() -> None:
    """Make, list and revoke the keys of clients."""


def _open(keys_file: str | None) -> "Keys":
    from heed.serve.access.gate import keys_path
    from heed.serve.access.keys import Keys
    from heed.serve.settings import Access

    return Keys(keys_path(Access(keys_file=keys_file or "")))


def _state(key: "Key", now: float) -> str:
    if key.is_revoked:
        return "revoked"
    if key.expires_at is None:
        return "valid"
    day = datetime.fromtimestamp(key.expires_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"{'valid until' if key.is_valid(now) else 'expired'} {day}"


def _limits(key: "Key") -> tuple[str, str]:
    return (
        f"{key.per_minute or 'any'} texts a minute",
        f"{key.chars or 'any'} characters a request",
    )
