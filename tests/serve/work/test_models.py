"""Models are opened once, closed under a memory limit, and replaced when their folder changes."""

import asyncio
import logging
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from tests.serve.conftest import SENTENCES, make_model

import heed
from heed.errors import ConfigError, DataError, FormatError, HeedError, UsageError
from heed.serve.refusal import Refusal
from heed.serve.work import models as models_module
from heed.serve.work.guides import Guides
from heed.serve.work.models import Models, read_models
from heed.serve.work.versions import Opened, files_state, open_version, size_bytes, version_of
from heed.translate.glossary.glossary import Glossary


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that were read, in order."""
    names: list[str] = []

    def counted(folder: Path, name: str, guides: Guides) -> Opened:
        names.append(name)
        return open_version(folder, name, guides)

    monkeypatch.setattr(models_module, "open_version", counted)
    return names


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(make_model(tmp_path / "en-de", "en", "de", seed=1))


Read = Callable[..., Models]


@pytest.fixture
def read() -> Iterator[Read]:
    made: list[Models] = []

    def start(
        *folders: str | Path, clock: Callable[[], float] | None = None, memory_bytes: int = 0
    ) -> Models:
        plain = read_models([str(folder) for folder in folders])
        plain.close()
        models = Models(
            plain.folders,
            plain.routes,
            memory_bytes=memory_bytes,
            **({"clock": clock} if clock else {}),
        )
        made.append(models)
        return models

    yield start
    for models in made:
        models.close()


async def text_of(models: Models, name: str) -> str:
    async with models.use(name) as opened:
        return opened.translator(SENTENCES[0])


async def settle(models: Models) -> None:
    """Wait until the thread that reads models has nothing to do."""
    await asyncio.wrap_future(models._reader.submit(lambda: None))


def test_many_first_users_wait_for_one_reading(read: Read, folder: Path, opened: list[str]) -> None:
    models = read(folder)
    assert not models.is_open("en-de")

    async def run() -> list[str]:
        return await asyncio.gather(*(text_of(models, "en-de") for _ in range(20)))

    assert asyncio.run(run()) == [heed.load(folder)(SENTENCES[0])] * 20
    assert opened == ["en-de"]
    assert models.is_open("en-de")


def test_a_model_is_read_beside_the_event_loop(
    read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def slow(folder: Path, name: str, guides: Guides) -> Opened:
        gate.wait(10)
        return open_version(folder, name, guides)

    monkeypatch.setattr(models_module, "open_version", slow)
    models = read(folder)

    async def run() -> None:
        asking = asyncio.create_task(text_of(models, "en-de"))
        leaving = asyncio.create_task(text_of(models, "en-de"))
        await asyncio.sleep(0.01)
        leaving.cancel()  # the other one goes on waiting
        await asyncio.sleep(0.01)
        assert not asking.done()
        gate.set()
        await asking

    asyncio.run(run())


def test_the_model_used_least_recently_is_closed(
    read: Read, tmp_path: Path, opened: list[str]
) -> None:
    folders = [make_model(tmp_path / name, "en", "de") for name in ("a", "b", "c")]
    size = open_version(Path(folders[0]), "a").size_bytes
    models = read(*folders, memory_bytes=2 * size)

    async def run() -> None:
        for name in ("a", "b", "a", "c"):
            await text_of(models, name)
        assert [name for name in "abc" if models.is_open(name)] == ["a", "c"]
        await text_of(models, "b")
        assert [name for name in "abc" if models.is_open(name)] == ["b", "c"]

    asyncio.run(run())
    assert opened == ["a", "b", "c", "b"]


def test_a_model_in_use_is_never_closed(read: Read, tmp_path: Path) -> None:
    folders = [make_model(tmp_path / name, "en", "de") for name in ("a", "b")]
    models = read(*folders, memory_bytes=1)

    async def run() -> None:
        async with models.use("a"):
            await text_of(models, "b")
            assert models.is_open("a")
        await text_of(models, "b")
        assert not models.is_open("a")

    asyncio.run(run())


def test_a_changed_model_replaces_the_old_one_which_finishes_its_work(
    read: Read, folder: Path, tmp_path: Path, opened: list[str]
) -> None:
    clock = Clock()
    models = read(folder, clock=clock)
    old_text = heed.load(folder)(SENTENCES[0])

    async def run() -> None:
        assert await text_of(models, "en-de") == old_text
        async with models.use("en-de") as old:
            make_model(folder, "en", "de", seed=9)
            new_text = heed.load(folder)(SENTENCES[0])
            assert new_text != old_text
            assert await text_of(models, "en-de") == old_text  # looked at a moment ago
            clock.now += 10
            assert await text_of(models, "en-de") == old_text  # it is being read
            await settle(models)
            assert await text_of(models, "en-de") == new_text
            assert old.translator(SENTENCES[0]) == old_text
        assert opened == ["en-de", "en-de"]

    asyncio.run(run())


def test_a_damaged_new_version_is_refused_and_the_old_one_stays(
    read: Read, folder: Path, opened: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    models = read(folder)

    async def run() -> None:
        old_text = await text_of(models, "en-de")
        make_model(folder, "en", "de", seed=9)
        with (folder / "model.safetensors").open("r+b") as file:
            file.seek(-8, 2)
            file.write(b"\xff" * 8)
        for _ in range(2):
            models.refresh()
            await settle(models)
        assert await text_of(models, "en-de") == old_text
        make_model(folder, "en", "de", seed=10)
        models.refresh()
        await settle(models)
        assert await text_of(models, "en-de") == heed.load(folder)(SENTENCES[0])

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    refused = [record for record in caplog.records if "was rejected" in record.message]
    assert len(refused) == 1
    assert opened == ["en-de"] * 3


def test_a_new_version_that_memory_has_no_room_for_is_refused_once(
    read: Read,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    models = read(folder)

    async def run() -> None:
        old_text = await text_of(models, "en-de")
        make_model(folder, "en", "de", seed=9)
        monkeypatch.setattr(models_module, "open_version", Mock(side_effect=MemoryError))
        for _ in range(2):
            models.refresh()
            await settle(models)
        assert await text_of(models, "en-de") == old_text

    asyncio.run(run())
    assert len([record for record in caplog.records if "was rejected" in record.message]) == 1


def test_a_new_version_of_other_languages_is_refused(
    read: Read, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = read(folder)

    async def run() -> None:
        old_text = await text_of(models, "en-de")
        make_model(folder, "en", "fr", seed=9)
        models.refresh()
        await settle(models)
        assert await text_of(models, "en-de") == old_text

    asyncio.run(run())
    assert "translated en to de, and its new version translates en to fr" in caplog.text


def test_other_languages_than_those_announced_at_the_start_are_refused(
    read: Read, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = read(folder)
    make_model(folder, "fr", "de", seed=9)

    async def run() -> None:
        with pytest.raises(Refusal, match="en-de cannot be read at the moment"):
            await text_of(models, "en-de")

    asyncio.run(run())
    assert "translated en to de, and its new version translates fr to de" in caplog.text


def test_other_languages_are_refused_also_after_the_old_version_was_closed(
    read: Read, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    models = read(folder, memory_bytes=1)

    async def run() -> None:
        await text_of(models, "en-de")
        assert not models.is_open("en-de")
        make_model(folder, "en", "fr", seed=9)
        with pytest.raises(Refusal, match="en-de cannot be read at the moment"):
            await text_of(models, "en-de")
        make_model(folder, "en", "de", seed=10)
        await text_of(models, "en-de")

    asyncio.run(run())
    assert "translated en to de, and its new version translates en to fr" in caplog.text


def test_a_model_that_cannot_be_read_is_refused_in_words(read: Read, folder: Path) -> None:
    models = read(folder)
    shutil.rmtree(folder)

    async def run() -> None:
        with pytest.raises(Refusal, match="en-de cannot be read at the moment") as caught:
            await text_of(models, "en-de")
        assert caught.value.status == 503
        make_model(folder, "en", "de")
        await text_of(models, "en-de")

    asyncio.run(run())


def damage(folder: Path) -> bytes:
    """Change the last bytes of the weights; return the file as it was."""
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8] + b"\xff" * 8)
    return whole


def test_a_damaged_model_is_read_once_until_a_file_changes(
    read: Read, folder: Path, opened: list[str]
) -> None:
    clock = Clock()
    models = read(folder, clock=clock)
    whole = damage(folder)

    async def run() -> None:
        for _ in range(3):
            with pytest.raises(Refusal, match="en-de cannot be read at the moment"):
                await text_of(models, "en-de")
        assert len(opened) == 1
        (folder / "notes.txt").touch()  # no file of the model
        clock.now += models_module.RETRY_S - 0.1
        with pytest.raises(Refusal):
            await text_of(models, "en-de")
        assert len(opened) == 1
        clock.now += 0.1
        with pytest.raises(Refusal):
            await text_of(models, "en-de")
        assert len(opened) == 2
        (folder / "model.safetensors").write_bytes(whole)
        await text_of(models, "en-de")

    asyncio.run(run())
    assert len(opened) == 3


def test_a_model_that_memory_had_no_room_for_is_tried_again(
    read: Read, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    models = read(folder, clock=clock)

    async def run() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(models_module, "open_version", Mock(side_effect=MemoryError))
            with pytest.raises(Refusal):
                await text_of(models, "en-de")
        with pytest.raises(Refusal):
            await text_of(models, "en-de")
        clock.now += models_module.RETRY_S
        await text_of(models, "en-de")

    asyncio.run(run())


@pytest.mark.parametrize("first", ["manifest.json", "model.safetensors", "spm.model"])
def test_a_new_version_that_is_copied_file_by_file_replaces_the_old_one(
    read: Read,
    folder: Path,
    tmp_path: Path,
    opened: list[str],
    caplog: pytest.LogCaptureFixture,
    first: str,
) -> None:
    models = read(folder)
    new = Path(make_model(tmp_path / "new", "en", "de", seed=9))
    files = sorted(new.iterdir(), key=lambda file: (file.name != first, file.name))

    async def run() -> None:
        old_text, new_text = await text_of(models, "en-de"), heed.load(new)(SENTENCES[0])
        assert old_text != new_text
        for file in files:
            assert await text_of(models, "en-de") in (old_text, new_text)
            shutil.copy(file, tmp_path / "half")
            (tmp_path / "half").rename(folder / file.name)
            for _ in range(2):
                await replaced_once(models)
        assert await text_of(models, "en-de") == new_text

    asyncio.run(run())
    assert len(opened) <= 1 + len(files)  # a state of the files is read once
    assert len([each for each in caplog.records if "was rejected" in each.message]) <= 1


def test_a_damaged_new_version_that_is_repaired_replaces_the_old_one(
    read: Read, folder: Path
) -> None:
    models = read(folder)

    async def run() -> None:
        await text_of(models, "en-de")
        make_model(folder, "en", "de", seed=9)
        whole = damage(folder)
        await replaced_once(models)
        (folder / "model.safetensors").write_bytes(whole)  # of the same manifest and size
        await replaced_once(models)
        assert await text_of(models, "en-de") == heed.load(folder)(SENTENCES[0])

    asyncio.run(run())


@pytest.mark.parametrize("where", ["checkpoints/best", "checkpoints/step-000004"])
def test_the_state_of_files_includes_checkpoints(folder: Path, where: str) -> None:
    run = folder.parent / "run"
    shutil.copytree(folder, run / where)
    states = [files_state(path) for path in (run, run / "checkpoints", run / where)]
    damage(run / where)
    after = [files_state(path) for path in (run, run / "checkpoints", run / where)]
    assert not any(one == other for one, other in zip(states, after, strict=True))
    (run / "log.txt").touch()
    assert [files_state(path) for path in (run, run / "checkpoints", run / where)] == after
    shutil.rmtree(run)
    assert files_state(run) == ()


def test_languages_of_versions_are_compared(folder: Path, tmp_path: Path) -> None:
    one = open_version(folder, "one")
    other = open_version(Path(make_model(tmp_path / "other", "de", "en")), "one")
    one.require_languages(open_version(folder, "one").languages)
    with pytest.raises(ConfigError, match="one translated en to de, and its new version"):
        other.require_languages(one.languages)


def test_a_folder_that_is_replaced_while_it_is_read_is_read_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Path(make_model(tmp_path / "other", "en", "de", seed=2))
    wanted = heed.load(other)(SENTENCES[0])

    def replaced(given: Path, **options: Any) -> heed.Translator:
        if other.exists():
            shutil.rmtree(given)
            other.rename(given)
            raise FormatError("a file of the old version is missing")
        return heed.load(given, **options)

    monkeypatch.setattr("heed.serve.work.versions.load", replaced)
    assert open_version(folder, "en-de").translator(SENTENCES[0]) == wanted


def test_a_folder_that_changes_all_the_time_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = iter(map(str, range(100)))
    monkeypatch.setattr(
        "heed.serve.work.versions.version_of", lambda folder, guides: next(versions)
    )
    with pytest.raises(FormatError, match="keeps changing while it is read"):
        open_version(folder, "en-de")


async def replaced_once(models: Models) -> None:
    """Notice the changes of all folders and files."""
    models.refresh()
    await settle(models)


def test_a_model_follows_its_files_as_they_are_now(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another version of the pairs is another version of the model, so caches tell them apart."""
    path = tmp_path / "today.csv"
    path.write_text(f"de,en\nHunde,{SENTENCES[0]}\n")
    models = read_models([str(folder)], memory_files=[f"en:de={path}"])
    plain, versions = heed.load(folder)(SENTENCES[0]), []

    async def text() -> str:
        async with models.use("en-de") as opened:
            versions.append(opened.version)
            assert opened.size_bytes == size_bytes(folder) + path_size
            return opened.translator(SENTENCES[0])

    async def run() -> None:
        nonlocal path_size
        assert await text() == "Hunde" != plain
        path.write_text(f"en,de\n{SENTENCES[0]},Zwei\n")
        path_size = path.stat().st_size
        await replaced_once(models)
        assert await text() == "Zwei"
        path.rename(tmp_path / "gone")
        await replaced_once(models)  # the old pairs stay
        assert await text() == "Zwei"

    path_size = path.stat().st_size
    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    models.close()
    assert versions[0] != versions[1] == versions[2] != version_of(folder)
    assert caplog.messages.count(f"{path}: 1 of its pairs guide the model en-de") == 2
    assert f"model en-de was rejected: {path} cannot be read: No such file" in caplog.text


def test_a_model_has_the_pairs_of_its_direction(folder: Path, tmp_path: Path) -> None:
    back = make_model(tmp_path / "de-en", "de", "en")
    forth, other = tmp_path / "a.tsv", tmp_path / "b.tsv"
    forth.write_text(f"{SENTENCES[0]}\tHunde\n")
    other.write_text(f"{SENTENCES[0]}\tDogs\n")
    models = read_models([str(folder), back], memory_files=[f"en:de={forth}", f"de:en={other}"])
    assert models.open("en-de")(SENTENCES[0]) == "Hunde"
    assert models.open("de-en")(SENTENCES[0]) == "Dogs"
    models.close()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("gone.tsv", DataError, r"gone\.tsv cannot be read"),
        ("pairs.txt", UsageError, r"^.*pairs\.txt must be a file of both languages"),
        ("broken.tmx", DataError, r"broken\.tmx"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(
    folder: Path, tmp_path: Path, name: str, kind: type[HeedError], words: str
) -> None:
    for wrong in ("pairs.txt", "broken.tmx"):
        (tmp_path / wrong).write_text("<tmx>")
    models = read_models([str(folder)], memory_files=[str(tmp_path / name)])
    with pytest.raises(kind, match=words):
        models.open("en-de")
    models.close()


def test_a_model_has_the_terms_of_its_files_as_they_are_now(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A changed file is another version of the model; one with a mistake leaves the old terms."""
    first, second = tmp_path / "a.tsv", tmp_path / "b.csv"
    first.write_text("dog\tHund\n")
    second.write_text("Dog,Rüde\nbike,Rad\nbike,Rad\n")
    spelled = [f"en:de={first}", f"en:de={second}"]
    models = read_models([str(folder)], glossary_files=spelled)
    own = Glossary.of({"bike": "Velo"})

    async def targets(own: Glossary | None = None) -> tuple[str, list[str]]:
        async with models.use("en-de") as opened:
            glossary = opened.glossary("en", "de", own)
            assert glossary is not None and opened.glossary("de", "en", own) is own
            found = glossary.occurrences("A Dog, a bike.")
            return opened.version, [occurrence.target for occurrence in found]

    async def run() -> None:
        version, found = await targets()
        assert found == ["Hund", "Rad"] and version != version_of(folder)
        assert await targets(own) == (version, ["Hund", "Velo"])
        first.write_text("dog\tHündin\n")
        await replaced_once(models)
        newer, found = await targets()
        assert found == ["Hündin", "Rad"] and newer != version
        first.write_text("dog\n")
        await replaced_once(models)
        assert await targets() == (newer, ["Hündin", "Rad"])

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    models.close()
    assert f"{second}: 2 terms guide the model en-de" in caplog.messages
    assert f"{second}: Line 3 is the same as line 2." in caplog.messages
    assert f"model en-de was rejected: {first}: Line 1 of the glossary must have" in caplog.text


@pytest.mark.parametrize(
    ("name", "words"),
    [("gone.tsv", "cannot be read"), ("wrong.tsv", "Line 1"), ("", "not a regular file")],
)
def test_a_file_that_is_no_glossary_is_refused(
    folder: Path, tmp_path: Path, name: str, words: str
) -> None:
    (tmp_path / "wrong.tsv").write_text("dog")
    models = read_models([str(folder)], glossary_files=[str(tmp_path / name)])
    with pytest.raises(HeedError, match=f"{name}.*{words}"):
        models.open("en-de")
    models.close()
