"""The soak's own requests are answered as it expects, and the server's memory stays as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "soak_serve.py"


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("n_requests", [pytest.param(400, marks=pytest.mark.reliability), 20_000])
def test_mixed_requests_leave_memory_and_files_as_they_were(en_de: str, n_requests: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), en_de, "--requests", str(n_requests)],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:21]]
    early, late = float(rows[7][2]), float(rows[-2][2])
    # The cache of 4 MB and the heap's holes; a leak of 10 kB a request would be 10 MB.
    assert late - early < 8
    assert max(int(row[3]) for row in rows) < 40
