"""Texts of programs in JSON: string values are translated, keys and all else are kept.

Of the messages of a browser's extension only the `message` is translated. In a file of Flutter
(.arb), values of keys that begin with `@` describe other values, and are kept; `@@locale` becomes
the language of the translations.

Source: https://github.com/google/app-resource-bundle/wiki/ApplicationResourceBundleSpecification,
https://developer.chrome.com/docs/extensions/reference/api/i18n
"""

import json
import re
from functools import partial
from typing import Any

from heed.documents.assembly import Assembly
from heed.documents.fields import IN_DOLLARS, IN_JSON, PLAIN
from heed.documents.message import Message
from heed.documents.segment import OnRead, ignore
from heed.errors import DataError

_TOKEN = re.compile(
    r"(?P<string>\"(?:[^\"\\]|\\.)*+\")(?P<colon>\s*+:)?|(?P<begin>[\[{])|(?P<end>[\]}])"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LOCALE = "@@locale"


def split_json(text: str, on_read: OnRead = ignore) -> Assembly:
    """The string values of a file, such as those of i18next.

    Args:
        text: the file.
        on_read: called for each value; may stop this.

    Raises:
        DataError: it is not JSON; names the place.
    """
    return _split(text, on_read, is_arb=False, locale="")


def split_arb(text: str, target_lang: str = "", on_read: OnRead = ignore) -> Assembly:
    """The messages of an application resource bundle.

    Args:
        text: the file.
        target_lang: the language of the translations; "" = unknown.
        on_read: called for each value; may stop this.

    Raises:
        DataError: it is not JSON; names the place.
    """
    return _split(text, on_read, is_arb=True, locale=target_lang.replace("-", "_"))


def _split(text: str, on_read: OnRead, *, is_arb: bool, locale: str) -> Assembly:
    is_extension = not is_arb and _is_of_extension(_load(text))
    format = PLAIN if is_arb else IN_DOLLARS if is_extension else IN_JSON
    is_ascii = text.isascii() and "\\u" in text
    write = partial(json.dumps, ensure_ascii=is_ascii)
    assembly = Assembly(text, on_read=on_read)
    path: list[str] = []
    for match in _TOKEN.finditer(text):
        raw = match["string"]
        if match["begin"]:
            path.append("")
        elif match["end"]:
            path.pop()
        elif match["colon"]:
            path[-1] = json.loads(raw)
        elif locale and path == [_LOCALE]:
            assembly.keep_until(match.start())
            assembly.keep(write(locale))
            assembly.place = match.end()
        elif not (is_arb and path and path[0].startswith("@")) and (
            not is_extension or path[1:] == ["message"]
        ):
            value = json.loads(raw)
            if not _SURROGATE.search(value):  # half of a character is not text
                message = Message.of(value, format, write, raw)
                assembly.replace(match.start(), match.end(), message)
    assembly.keep_until(len(text))
    return assembly


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"The JSON is malformed at line {error.lineno}, column {error.colno}: {error.msg}."
        ) from None
    except RecursionError:
        raise DataError("The JSON is nested too deeply. Is this a file of texts?") from None
    except ValueError as error:  # a number of very many digits
        raise DataError(f"The JSON cannot be read: {error}.") from None


def _is_of_extension(value: Any) -> bool:
    """Whether a file has messages of an extension: a record with a `message` for each key."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            isinstance(each, dict) and isinstance(each.get("message"), str)
            for each in value.values()
        )
    )
