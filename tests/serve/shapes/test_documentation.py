"""The page of the APIs is small, and loads nothing from elsewhere."""

import gzip
import re

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.shapes.documentation import MEDIA_TYPES


@pytest.fixture
def client(serve: Serve, en_de: str) -> TestClient:
    return serve(en_de)


def test_the_page_and_its_files_are_served_under_a_strict_policy(client: TestClient) -> None:
    for path in ("/docs", *(f"/docs/{name}" for name in MEDIA_TYPES)):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy


def test_no_other_file_is_served(client: TestClient) -> None:
    for name in ("docs.py", "..%2Fown.py", "%2e%2e/own.py", "docs.html%00"):
        answer = client.get(f"/docs/{name}")
        assert answer.status_code == 404
        assert list(answer.json()) == ["error"]


def test_the_page_names_no_other_server_and_has_no_script_in_its_text(client: TestClient) -> None:
    texts = [client.get(f"/docs/{name}").text for name in MEDIA_TYPES]
    assert not any(re.search(r"https?://", text) for text in texts)
    assert not any(re.search(r"innerHTML|onclick|style=|<style", text) for text in texts)
    assert len(gzip.compress("".join(texts).encode())) < 20_000
