"""The soak's own requests are answered as it expects, and the server's memory stays as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "soak_serve.py"


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(600)
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_2000_mixed_requests_leave_memory_and_files_as_they_were(en_de: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), en_de, "--requests", "2000"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:11]]
    early, late = float(rows[3][2]), float(rows[8][2])
    # The cache of 4 MB and the heap's holes; a leak of 10 kB a request would be 10 MB.
    assert late - early < 8
    assert max(int(row[3]) for row in rows) < 40
