"""The real program: `heed serve` in a process of its own."""

from collections.abc import Iterator

import pytest
from tests.serve.program import Program


@pytest.fixture(scope="module")
def program(en_de: str, de_en: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server of both directions, such as `http://127.0.0.1:40001`."""
    home = {"HEED_HOME": str(tmp_path_factory.mktemp("home"))}
    with Program("-m", en_de, "-m", de_en, "--threads", "1", environment=home) as running:
        yield running.url
        running.stop()
