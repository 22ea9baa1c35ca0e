"""Files that guide models belong to directions: every model of its direction gets a file."""

import os
from pathlib import Path

import pytest

from heed.errors import ConfigError, DataError
from heed.serve.work.directions import Route
from heed.serve.work.guides import GuideFile, Guides, read_guides

EN_DE = Route(source="en", target="de", model="one")
ROUTES = [
    EN_DE,
    Route(source="en", target="zh-Hant", model="one"),
    Route(source="en", target="de", model="two"),
    Route(source="de", target="en", model="back"),
]


def test_a_file_of_a_direction_is_for_all_its_models() -> None:
    spelled = ["en:de=a.tsv", "en:zh-Hant=b=c.tmx", "en:de=d.csv"]
    first, second, third = (
        GuideFile(path=path, source="en", target=target)
        for path, target in (("a.tsv", "de"), ("b=c.tmx", "zh-Hant"), ("d.csv", "de"))
    )
    assert read_guides(ROUTES, memory=spelled) == {
        "one": Guides(memory=(first, second, third)),
        "two": Guides(memory=(first, third)),
        "back": Guides(),
    }
    assert read_guides(ROUTES, glossaries=spelled[:1]) == {
        "one": Guides(glossaries=(first,)),
        "two": Guides(glossaries=(first,)),
        "back": Guides(),
    }


@pytest.mark.parametrize("routes", [[EN_DE], [EN_DE, ROUTES[2]]])
@pytest.mark.parametrize("spelled", ["a=b:c.tsv", "en:de=a=b:c.tsv"])
def test_the_only_direction_need_not_be_named(spelled: str, routes: list[Route]) -> None:
    file = GuideFile(path="a=b:c.tsv", source="en", target="de")
    guides = Guides(memory=(file,))
    assert read_guides(routes, memory=[spelled]) == {route.model: guides for route in routes}


@pytest.mark.parametrize(
    ("spelled", "routes", "words"),
    [
        (
            "a.tsv",
            ROUTES,
            r"a\.tsv must name its direction, because several are served "
            r"\(en:de, en:zh-Hant, de:en\): en:de=a\.tsv\.",
        ),
        ("de:zh-Hant=a.tsv", ROUTES, r"only en:de, en:zh-Hant, de:en are\."),
        ("de:en=a.tsv", [EN_DE], r"direction of de:en=a\.tsv must be served, but only en:de is\."),
        ("a.tsv", [], r"a\.tsv is for a model, but no model is served\."),
    ],
)
def test_a_direction_that_is_not_clear_is_refused(
    spelled: str, routes: list[Route], words: str
) -> None:
    with pytest.raises(ConfigError, match=rf"memory\.files: .*{words}"):
        read_guides(routes, memory=[spelled])
    with pytest.raises(ConfigError, match=rf"glossary\.files: .*{words}"):
        read_guides(routes, glossaries=[spelled])


def test_a_changed_file_has_another_state(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    file = GuideFile(path=str(path), source="en", target="de")
    with pytest.raises(DataError, match=r"a\.tsv cannot be read: No such file"):
        file.state  # noqa: B018 - reading it raises
    path.write_text("a\tb\n")
    states = [file.state, file.state]
    assert file.size_bytes == 4
    os.utime(path, (1, 1))
    states.append(file.state)
    path.write_text("a\tbc\n")
    os.utime(path, (1, 1))
    states.append(file.state)
    assert states[0] == states[1] and len(set(states)) == 3


def test_a_file_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    """Reading it would never end, and no model could be loaded any more."""
    os.mkfifo(tmp_path / "a.tsv")
    file = GuideFile(path=str(tmp_path / "a.tsv"), source="en", target="de")
    for guides in (Guides(memory=(file,)), Guides(glossaries=(file,))):
        with pytest.raises(DataError, match=r"a\.tsv cannot be read: it is not a regular file"):
            guides.state  # noqa: B018 - reading it raises
