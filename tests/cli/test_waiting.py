import pytest

from heed.cli import waiting
from heed.cli.command import Session
from heed.cli.waiting import Waiting


def work(session: Session) -> None:
    with Waiting(session) as show:
        for n_done in range(2001):
            show("counting", n_done, 2000, "sentences")


def test_a_short_call_shows_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    work(Session())
    assert capsys.readouterr() == ("", "")


def test_a_long_call_shows_its_progress_on_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "SILENT_S", 0.0)
    work(Session())
    assert capsys.readouterr() == ("", "counting …\n")
    work(Session(is_quiet=True))
    assert capsys.readouterr() == ("", "")
