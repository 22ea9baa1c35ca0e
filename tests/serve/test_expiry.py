"""Warnings of a certificate that expires."""

import logging
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.serve.conftest import expire

from heed.serve import expiry
from heed.serve.expiry import expiry_of, warn_of_expiry
from heed.serve.settings import Listen


def test_the_time_is_the_one_that_openssl_reads(certificate: tuple[str, str]) -> None:
    command = ["openssl", "x509", "-noout", "-enddate", "-in", certificate[0]]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = ssl.cert_time_to_seconds(printed.strip().removeprefix("notAfter="))
    text = Path(certificate[0]).read_text()
    assert expiry_of(text) == datetime.fromtimestamp(seconds, UTC)
    # A chain begins with the certificate of the server.
    assert expiry_of(f"Bag Attributes\n{text}-----BEGIN CERTIFICATE-----\nx") == expiry_of(text)
    expire(path := certificate[0] + ".old", text)
    assert expiry_of(Path(path).read_text()) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "words"), [(90, ""), (91, "expires at 20"), (10**4, "expires at 20")]
)
def test_what_expires_soon_is_named(
    certificate: tuple[str, str],
    days: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The certificate was made for 90 days, some seconds ago."""
    monkeypatch.setattr(expiry, "WARN_WITHIN", timedelta(days=days, hours=-12))
    with caplog.at_level(logging.WARNING):
        warn_of_expiry(Listen(certificate=certificate[0], key=certificate[1]))
        warn_of_expiry(Listen())
    assert [words in message for message in caplog.messages] == ([True] if words else [])
