"""When a server's certificate expires, and a warning before and after that.

Source: RFC 5280, section 4.1 (the fields of a certificate); X.690, section 8.1 (their encoding).
"""

import logging
import re
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from pathlib import Path

from heed.serve.settings import Listen

log = logging.getLogger(__name__)

WARN_WITHIN = timedelta(days=14)
_PEM = re.compile(r"-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----([^-]*+)-----END")
_VERSION, _UTC_TIME = 0xA0, 0x17  # tags


def warn_of_expiry(listen: Listen) -> None:
    """Log a warning if the certificate has expired, or expires within `WARN_WITHIN`.

    Args:
        listen: settings whose files have been read.
    """
    if not listen.certificate:
        return
    end = expiry_of(Path(listen.certificate).read_text(errors="replace"))
    left = end - datetime.now(UTC)
    if left > WARN_WITHIN:
        return
    log.warning(
        "the certificate %s %s %s: renew it, and send the server SIGHUP",
        listen.certificate,
        "expires at" if left > timedelta(0) else "has expired; clients refuse it since",
        f"{end:%Y-%m-%d %H:%M} UTC",
    )


def expiry_of(text: str) -> datetime:
    """The time until which the first certificate of a PEM file is valid; that of the server."""
    data = b64decode(_PEM.findall(text)[0])
    place, _ = _content(data, 0)
    place, _ = _content(data, place)
    if data[place] == _VERSION:
        place = _content(data, place)[1]
    for _ in ("serial number", "signature algorithm", "issuer"):
        place = _content(data, place)[1]
    place, _ = _content(data, place)
    end = _content(data, place)[1]
    first, last = _content(data, end)
    year = "%y" if data[end] == _UTC_TIME else "%Y"
    found = datetime.strptime(data[first:last].decode(), f"{year}%m%d%H%M%SZ")
    return found.replace(tzinfo=UTC)


def _content(data: bytes, start: int) -> tuple[int, int]:
    """Where the content of an element starts and ends."""
    length, place = data[start + 1], start + 2
    if length & 0x80:
        n_bytes = length & 0x7F
        length = int.from_bytes(data[place : place + n_bytes])
        place += n_bytes
    return place, place + length
