import pytest

from heed.cli import waiting
from heed.cli.command import Session
from heed.cli.waiting import Waiting


def work(session: Session) -> None:
    with Waiting(session) as show:
        numbers = show.counted(range(2000), "counting", of=2000, unit="sentences")
        assert list(numbers) == list(range(2000))
        show("resampling", 7, 9, "sets")


def test_a_short_call_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    work(Session())
    assert capsys.readouterr() == ("", "")


def test_a_long_call_shows_its_progress_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.0)
    work(Session())
    assert capsys.readouterr() == ("", "counting …\nresampling: 7 of 9 sets\n")
    work(Session(is_quiet=True))
    assert capsys.readouterr() == ("", "")
