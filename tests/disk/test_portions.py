"""Portions of a long job: in order, counted, and all there after an interruption."""

from pathlib import Path

from heed.disk.portions import Portions


def test_what_was_saved_is_there_for_the_next_start(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    first = Portions(folder)
    assert (first.n_done, first.seconds, list(first.results())) == (0, 0.0, [])
    first.add(["a", "b"], 1.5)
    first.add(["ü"], 2.5)
    later = Portions(folder)
    assert (later.n_done, later.seconds) == (3, 2.5)
    later.add([str(number) for number in range(20)], 3.0)  # its number has more digits than "3"
    later.add(["last"], 4.0)
    expected = ["a", "b", "ü", *map(str, range(20)), "last"]
    assert list(Portions(folder).results()) == expected == list(later.results())


def test_removed_portions_take_an_empty_folder_with_them(tmp_path: Path) -> None:
    for name, others in (("job", []), ("other", ["note.txt"])):
        folder = tmp_path / name
        portions = Portions(folder)
        portions.add([1, 2], 0.5)
        (folder / "portion-0000000002.json.tmp-01234567").write_text("half a po")  # of a kill
        for other in others:
            (folder / other).write_text("kept")
        portions.remove()
        assert [path.name for path in folder.glob("*")] == others
        assert folder.exists() is bool(others)
        assert Portions(folder).n_done == 0
    Portions(tmp_path / "job").remove()
