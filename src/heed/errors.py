"""What can go wrong, as one tree of exceptions; and paths in their messages.

HeedError                 an error a person can act on; the command line shows one line, exit 1
├── UsageError            the command itself is wrong (exit 2)
├── ConfigError           a setting: unknown key, impossible value
├── DataError             text or corpora: missing file, bad encoding, unequal lines
├── FormatError           one of heed's files (weights, store, vocabulary) is damaged or foreign
├── RunError              a run folder cannot continue: locked, changed recipe, no space
│   └── WorkerError       one of several processes failed for a reason that the others do not have
└── MissingExtraError     an optional part is not installed

Bugs stay AssertionError and the like, with a traceback. `cli/main.py` turns these classes into
messages and exit codes.
"""

import errno

FULL_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's error numbers for a full disk, a used-up quota and a file that is too large."""


class HeedError(Exception):
    """The root; its message says what was wrong, where, and what to do, in a sentence or two."""

    exit_code = 1


class UsageError(HeedError):
    """The command or the call is malformed."""

    exit_code = 2


class ConfigError(HeedError):
    """A setting is unknown or impossible."""


class DataError(HeedError):
    """Text or a corpus could not be read."""


class FormatError(HeedError):
    """A file of heed's own is damaged, foreign or does not fit its neighbors."""


class RunError(HeedError):
    """A run folder cannot be started or continued."""


class WorkerError(RunError):
    """One of several processes of a run cannot go on, for a reason that the others do not have."""


class MissingExtraError(HeedError):
    """An optional part of heed is not installed."""

    def __init__(self, feature: str, extra: str, *, package: str = "") -> None:
        missing = f"{package}, which is not" if package else "packages that are not"
        super().__init__(f"{feature} needs {missing} installed: pip install 'heed[{extra}]'")


def in_shell(path: object) -> str:
    r"""A path as a message shows it in a command: in quotes if a shell would misread it.

    Bytes that are not UTF-8 and control characters are octal numbers: `$'caf\351.txt'`.
    """
    import shlex  # Not needed before a message.

    text = str(path)
    return shlex.quote(text) if text.isprintable() else f"$'{''.join(map(_octal, text))}'"


def _octal(character: str) -> str:
    """A character between `$'` and `'`."""
    if character.isprintable():
        return f"\\{character}" if character in "\\'" else character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))
