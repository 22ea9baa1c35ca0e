"""Requests are translated as `heed.load` translates them."""

import asyncio
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from safetensors import safe_open
from tests.serve.conftest import SENTENCES, Serve, make_model
from tests.serve.event_loop import beside_loop

import heed
from heed.bundle.bundle import read_folder_config
from heed.serve import describe
from heed.serve import service as service_module
from heed.serve.refusal import Refusal
from heed.serve.request import Direction, Request
from heed.serve.run import make_service
from heed.serve.service import Service
from heed.serve.settings import ServeSettings, Work
from heed.serve.texts import read_texts
from heed.serve.work import models as models_module
from heed.serve.work.guides import Guides
from heed.serve.work.models import Use
from heed.serve.work.versions import Opened, open_version, version_of
from heed.text.protection import expressions
from heed.translate.glossary.glossary import Glossary
from heed.translate.lines import Line, LineReader
from heed.translate.parts import Chunk
from heed.translate.remember import add_pairs
from heed.translate.result import Translation
from heed.translate.search import Searcher


def test_a_list_is_translated_as_the_translator_does(serve: Serve, en_de: str) -> None:
    client = serve(en_de)
    answer = client.post("/translate", json={"q": SENTENCES, "source": "en", "target": "de"})
    assert answer.status_code == 200
    assert answer.json() == {"translatedText": heed.load(en_de)(SENTENCES)}


def test_languages_that_are_not_served_are_refused(serve: Serve, en_de: str) -> None:
    answer = serve(en_de).post("/translate", json={"q": "a", "source": "en", "target": "zz"})
    assert answer.status_code == 400
    assert "zz" in answer.json()["error"]


def test_a_text_is_translated_sentence_by_sentence(serve: Serve, en_de: str) -> None:
    first, second = heed.load(en_de)(["A man is riding a bike.", "Two dogs play in the snow."])
    text = "A man is riding a bike.  Two dogs play in the snow.\n"
    answer = serve(en_de).post("/translate", json={"q": text, "source": "en", "target": "de"})
    assert answer.json() == {"translatedText": f"{first}  {second}\n"}


OPTIONS: list[dict[str, Any]] = [
    {},
    {"beam_size": 1},
    {"beam_size": 4, "length_penalty": 1.0},
    {"sample": True, "seed": 7},
    {"max_length": 3},
]


def test_any_mix_of_requests_gives_each_its_own_bits(en_de: str, de_en: str) -> None:
    """Many clients at once, some of whom leave: the others get what they would get alone."""
    chance = random.Random(3)
    plain = {"en": heed.load(en_de, threads=1), "de": heed.load(de_en, threads=1)}
    texts = [
        f"A{number} {line}"[: chance.randrange(2, 40)].strip()
        for number in range(40)
        for line in SENTENCES
    ]

    async def ask(service: Service, number: int) -> None:
        source = chance.choice(["en", "de"])
        options = chance.choice(OPTIONS)
        request = Request(
            texts=[f"Number {number}", *chance.sample(texts, k=chance.choice([0, 1, 2, 30]))],
            source=source,
            target="de" if source == "en" else "en",
            split="0",
            alternatives=chance.choice([0, 0, 2]),
            alignment=chance.random() < 0.3,
            options=options,
        )
        await asyncio.sleep(chance.random() * 0.3)
        asking = asyncio.create_task(service.translate(request))
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.02)
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            return
        found = await asking
        wanted = plain[source].translate(
            request.texts,
            alternatives=request.alternatives,
            alignment=request.alignment,
            **options,
        )
        given = [[part.translation for part in answer.segments] for answer in found]
        assert given == [[one] for one in wanted]

    async def run() -> None:
        work = Work(threads=3, batch_tokens=100, cache_mb=1)
        service = make_service(ServeSettings(models=(en_de, de_en), work=work))
        await asyncio.gather(*(ask(service, number) for number in range(60)))
        assert service.scheduler.n_waiting_chars == 0
        service.close()

    asyncio.run(run())


Using = Callable[..., Service]


@pytest.fixture
def using() -> Iterator[Using]:
    """`using(folder, …, timeout_s=…)`: a service with these settings of its work."""
    made: list[Service] = []

    def start(*folders: str, **work: Any) -> Service:
        made.append(
            make_service(ServeSettings(models=folders, work=Work(**{"threads": 1, **work})))
        )
        return made[-1]

    yield start
    for service in made:
        service.close(within_s=5)


def test_each_text_of_a_list_has_a_language_of_its_own(
    using: Using, en_de: str, de_en: str
) -> None:
    service = using(en_de, de_en)
    texts = ["Two dogs play in the snow.", "Zwei Hunde spielen im Schnee.", "123"]
    english, german, number = asyncio.run(
        service.translate(Request(texts=texts, source="auto", target="de"))
    )
    assert (english.source, english.text, english.model) == (
        "en",
        heed.load(en_de)(texts[0]),
        "en-de",
    )
    assert english.confidence is not None
    assert english.confidence > 0.9
    assert (german.source, german.text, german.model) == ("de", texts[1], "")
    assert number.text == "123"
    assert [doubt.kind for doubt in number.doubts] == ["language_doubtful"]


def test_markup_keeps_its_tags(using: Using, en_de: str) -> None:
    page = "<p>Two dogs &amp; a man.</p><script>let a = 1</script><p title='A man.'>Two</p>"
    (answer,) = asyncio.run(
        using(en_de).translate(Request(texts=[page], source="en", target="de", format="html"))
    )
    plain = heed.load(en_de)
    assert answer.text.count("<p") == 2
    assert "<script>let a = 1</script>" in answer.text
    assert {segment.source for segment in answer.segments} == {"Two dogs & a man.", "A man.", "Two"}
    by_source = {segment.source: segment.translation.text for segment in answer.segments}
    assert by_source == {source: plain(source) for source in by_source}


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        (["<a><b></a>"], "The XML is malformed at line 1, column 7: "),
        (["A", "<b>B</b>", "<a><b></a>"], "Text 3 of 3: The XML is malformed at line 1, "),
    ],
)
def test_malformed_xml_is_refused_with_the_number_of_its_text(
    using: Using, en_de: str, texts: list[str], sentence: str
) -> None:
    request = Request(texts=texts, source="en", target="de", format="xml")
    with pytest.raises(Refusal) as caught:
        asyncio.run(using(en_de).translate(request))
    assert caught.value.status == 400
    assert caught.value.sentence.startswith(sentence)


def test_a_hostile_text_fails_no_other_one(using: Using, en_de: str) -> None:
    """Messages in messages: each is read by itself, and Python's stack is short."""
    hostile = "{n, plural, other {" * 1000 + "x" + "}}" * 1000
    request = Request(texts=[SENTENCES[0], hostile], source="en", target="de")
    first, second = asyncio.run(using(en_de).translate(request))
    assert first.text == heed.load(en_de)(SENTENCES[0])
    assert second.text == hostile


def test_a_stream_gives_segments_in_order_and_then_all_answers(using: Using, en_de: str) -> None:
    request = Request(texts=[" ".join(SENTENCES), SENTENCES[0]], source="en", target="de")

    async def run() -> None:
        service = using(en_de)
        *parts, answers = [part async for part in service.stream(request)]
        assert answers == await service.translate(request)
        assert isinstance(answers, list)
        assert parts == [
            (index, place, segment)
            for index, answer in enumerate(answers)
            for place, segment in enumerate(answer.segments)
        ]

    asyncio.run(run())


def test_equal_segments_are_searched_once(using: Using, en_de: str) -> None:
    async def run() -> None:
        service = using(en_de)
        request = Request(texts=[SENTENCES[0]] * 5, source="en", target="de")
        first = await service.translate(request)
        assert (service.cache.n_hits, service.cache.n_misses) == (0, 1)
        assert await service.translate(request) == first
        assert (service.cache.n_hits, service.cache.n_misses) == (1, 1)
        await service.translate(replace(request, options={"beam_size": 1}))
        assert (service.cache.n_hits, service.cache.n_misses) == (1, 2)

    asyncio.run(run())


def test_a_text_from_the_cache_is_not_read_again(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    parts = LineReader.parts

    def counted(reader: LineReader, line: Line, number: int, tag: list[int]) -> list[Chunk]:
        read.append(line.text)
        return parts(reader, line, number, tag)

    monkeypatch.setattr(LineReader, "parts", counted)

    async def run() -> None:
        service = using(en_de)
        request = Request(texts=[SENTENCES[0], SENTENCES[1]], source="en", target="de")
        first = await service.translate(request)
        again = await service.translate(replace(request, texts=[*request.texts, SENTENCES[2]]))
        assert again[:2] == first

    asyncio.run(run())
    assert read == SENTENCES[:3]


class Gated:
    """A searcher that counts the parts it is given, and waits for a gate."""

    def __init__(self, searcher: Searcher) -> None:
        self._searcher = searcher
        self.gate = threading.Event()
        self.has_begun = threading.Event()
        self.n_parts = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._searcher, name)

    def search_once(
        self, chunks: Sequence[Chunk], *arguments: Any, **named: Any
    ) -> list[Translation]:
        self.n_parts += len(chunks)
        self.has_begun.set()
        self.gate.wait()
        return self._searcher.search_once(chunks, *arguments, **named)


@pytest.mark.parametrize("leaves", [None, 0, 1])
def test_equal_segments_of_requests_at_the_same_time_are_searched_once(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch, leaves: int | None
) -> None:
    request = Request(texts=[SENTENCES[0]], source="en", target="de")

    async def run() -> None:
        service = using(en_de, cache_mb=0)
        (plain,) = await service.translate(request)
        translator = service.models.open("en-de")
        gated = Gated(translator.searcher)
        monkeypatch.setattr(type(translator), "searcher", gated)
        same = [asyncio.create_task(service.translate(request)) for _ in range(2)]
        await asyncio.to_thread(gated.has_begun.wait)
        same.append(asyncio.create_task(service.translate(request)))
        others = (
            replace(request, options={"length_penalty": 2.0}),
            replace(request, alternatives=1),
        )
        differing = [asyncio.create_task(service.translate(other)) for other in others]
        drawn = replace(request, options={"sample": True, "seed": 1, "beam_size": 1})
        differing += [asyncio.create_task(service.translate(drawn)) for _ in range(2)]
        await asyncio.sleep(0.01)
        if leaves is not None:
            same.pop(leaves).cancel()
            await asyncio.sleep(0)
        gated.gate.set()
        assert await asyncio.gather(*same) == [[plain]] * len(same)
        await asyncio.gather(*differing)
        assert gated.n_parts == 1 + len(differing)
        assert not service._in_work  # nothing of it stays

    asyncio.run(run())


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram_size": 2}, {"max_length": 60}])
def test_second_searches_that_come_together_find_what_one_alone_finds(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    texts = [f"{line} {number}" for number in range(8) for line in SENTENCES]
    sizes: list[int] = []
    search_again = Searcher.search_again

    def counted(searcher: Searcher, chunks: Any, **named: Any) -> list[Translation]:
        sizes.append(len(chunks))
        return search_again(searcher, chunks, **named)

    async def run() -> None:
        service = using(en_de, cache_mb=0, batch_tokens=256)
        translator = service.models.open("en-de")
        translator.searches_again = True
        alone = [translator.translate([text], **options)[0] for text in texts]
        monkeypatch.setattr(Searcher, "search_again", counted)
        requests = [
            Request(texts=[text], source="en", target="de", split="0", options=options)
            for text in texts
        ]
        answers = await asyncio.gather(*map(service.translate, requests))
        found = [answer.segments[0].translation for (answer,) in answers]
        assert found == alone

    asyncio.run(run())
    assert max(sizes) > 1  # of several requests


def test_alternatives_of_several_segments_are_whole_texts(using: Using, en_de: str) -> None:
    text = f"{SENTENCES[0]}  {SENTENCES[2]}"
    (answer,) = asyncio.run(
        using(en_de).translate(Request(texts=[text], source="en", target="de", alternatives=2))
    )
    first, second = (segment.translation for segment in answer.segments)
    assert answer.alternatives[0] == (
        f"{first.alternatives[0].text}  {second.alternatives[0].text}"
    )
    assert len(set(answer.alternatives) | {answer.text}) == 1 + len(answer.alternatives)


def test_a_request_that_takes_too_long_is_refused(using: Using, en_de: str) -> None:
    service = using(en_de, timeout_s=0.1, cache_mb=0)
    texts = [f"{number} {line}" for number in range(500) for line in SENTENCES]
    with pytest.raises(Refusal, match="not ready in time") as caught:
        asyncio.run(service.translate(Request(texts=texts, source="en", target="de")))
    assert caught.value.status == 504


def test_a_prefix_that_is_too_long_is_only_its_own_requests_error(using: Using, en_de: str) -> None:
    async def run() -> None:
        service = using(en_de)
        bad = Request(texts=["A man."], source="en", target="de", prefixes=["a b c d e f g h i"])
        good = Request(texts=["A man."], source="en", target="de", prefixes=["a"])
        refused, answers = await asyncio.gather(
            service.translate(bad), service.translate(good), return_exceptions=True
        )
        assert isinstance(refused, Refusal)
        assert (refused.status, "must be shorter than max_length" in refused.sentence) == (
            400,
            True,
        )
        assert isinstance(answers, list)
        assert answers[0].text.startswith("a")

    asyncio.run(run())


def test_a_prefix_that_is_too_long_for_the_models_positions_is_refused_at_once(
    using: Using, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, it failed in its batch, whose other requests were searched a second time."""
    folder = make_model(tmp_path / "model", "en", "de", positions="learned", max_positions=6)
    monkeypatch.setattr(Searcher, "search_once", lambda *_, **__: pytest.fail("was searched"))
    prefixes = ["a b c d e f g h i"]
    request = Request(texts=["A man."], source="en", target="de", prefixes=prefixes)
    with pytest.raises(Refusal, match="the longest text that the model can write") as caught:
        asyncio.run(using(folder).translate(request))
    assert (caught.value.status, "of line 1" in caught.value.sentence) == (400, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_best": 2}, "n_best is not an option of a request"),
        ({"beam_size": 1000}, "options.beam_size must be at most 64"),
        ({"beem_size": 2}, "did you mean beam_size"),
    ],
)
def test_options_of_a_request_are_limited(
    using: Using, en_de: str, options: dict[str, Any], words: str
) -> None:
    request = Request(texts=["A man."], source="en", target="de", options=options)
    with pytest.raises(Refusal, match=words) as caught:
        asyncio.run(using(en_de).translate(request))
    assert (caught.value.status, caught.value.field) == (400, "options")


def test_words_scores_and_alignments_are_the_translators_own(using: Using, en_de: str) -> None:
    text, plain = SENTENCES[0], heed.load(en_de)

    async def run() -> None:
        service = using(en_de)
        direction = Direction(source="en", target="de")
        assert await service.next_words(text, "a", direction, k=3) == plain.next_word(text, "a", 3)
        assert await service.continuations(text, "a", direction, k=2) == plain.continuations(
            text, "a", 2
        )
        assert await service.score(text, "a b", direction) == plain.score([text], ["a b"])[0]
        assert await service.align(text, "a b", direction) == plain.align(text, "a b")
        # Its language is that of the text, not of the longer translation.
        german = "Ein Mann fährt mit seinem Fahrrad durch die Stadt, zwei Hunde laufen mit."
        for call in (service.score, service.align):
            assert await call("A man rides a bike.", german, Direction(target="de"))
        assert await service.next_words("A man rides a bike.", german, Direction(target="de"), k=1)
        with pytest.raises(Refusal, match="is in German already"):
            await service.score(SENTENCES[3], SENTENCES[3], Direction(target="de"))

    asyncio.run(run())


def test_models_and_languages_say_what_they_are(using: Using, en_de: str, de_en: str) -> None:
    async def run() -> None:
        service = using(en_de, de_en)
        await service.translate(Request(texts=["A man."], source="en", target="de"))
        first, second = await service.models_info()
        assert (first.name, first.directions, first.is_loaded) == ("en-de", (("en", "de"),), True)
        assert (second.name, second.is_loaded, second.dtype) == ("de-en", False, "float32")
        assert first.parameters == plain_parameters(en_de)
        assert first.size_bytes >= 4 * first.parameters
        assert first.card.startswith("---")
        assert first.version != second.version
        assert first.tokens_per_s and second.tokens_per_s is None
        english, german = service.languages()
        assert (english.code, english.name, english.targets) == ("en", "English", ("de",))
        assert (german.code, german.name, german.targets) == ("de", "German", ("en",))

    asyncio.run(run())


def test_models_on_a_disk_that_does_not_answer_take_one_thread(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page asks for the models. Threads that hang would be missing for other requests."""
    is_over = threading.Event()
    asked: list[Path] = []

    def hang(folder: Path) -> str:
        asked.append(folder)
        assert is_over.wait(60)
        return version_of(folder)

    monkeypatch.setattr(describe, "version_of", hang)

    async def run() -> None:
        service = using(en_de, timeout_s=0.1)
        for _ in range(3):
            with pytest.raises(Refusal, match="The answer was not ready in time"):
                await service.models_info()
        assert len(asked) == 1
        is_over.set()
        async with asyncio.timeout(60):
            while True:
                with suppress(Refusal):
                    (model,) = await service.models_info()
                    assert model.name == "en-de"
                    return

    asyncio.run(run())


def test_a_model_is_described_from_its_folder_once_for_each_version(
    using: Using, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(make_model(tmp_path / "en-de", "en", "de", seed=1))
    read: list[Path] = []

    def config(path: Path) -> dict[str, object]:
        read.append(path)
        return read_folder_config(path)

    monkeypatch.setattr(describe, "read_folder_config", config)

    async def run() -> None:
        service = using(str(folder))
        versions = [(await service.models_info())[0].version for _ in range(3)]
        make_model(folder, "en", "de", seed=2)
        versions += [(await service.models_info())[0].version for _ in range(3)]
        assert len(set(versions[:3])) == len(set(versions[3:])) == 1
        assert versions[0] != versions[3]
        shutil.rmtree(folder)  # the model in memory is still what it was
        assert (await service.models_info())[0].version == versions[3]

    asyncio.run(run())
    assert len(read) == 2


def plain_parameters(folder: str) -> int:
    """Numbers in the file of weights."""
    with safe_open(f"{folder}/model.safetensors", framework="numpy") as weights:
        return sum(weights.get_tensor(name).size for name in weights.keys())  # noqa: SIM118 - not a dict


def test_a_language_is_detected_beside_the_event_loop(using: Using, en_de: str) -> None:
    found = asyncio.run(using(en_de).detect("Wo ist die nächste Bäckerei?"))
    assert found.best.code == "de"


def test_terms_of_a_glossary_stand_in_the_answer_and_nowhere_else(using: Using, en_de: str) -> None:
    async def run() -> None:
        service = using(en_de)
        glossary = Glossary.of({"dogs": "Rüden", "snow": "Neuschnee"})
        request = Request(
            texts=["Two dogs play in the snow.", "A man."],
            source="en",
            target="de",
            glossary=glossary,
        )
        first, second = await service.translate(request)
        (wanted,) = heed.load(en_de).translate(request.texts[:1], glossary=glossary)
        assert first.text == wanted.text
        # A model of random weights may have no room for a term below its longest length.
        lacking = [term for term in ("Rüden", "Neuschnee") if term not in first.text]
        kinds = [doubt.kind for doubt in first.doubts]
        assert kinds.count("glossary_not_placed") == len(lacking)
        assert second == (await service.translate(replace(request, glossary=None)))[1]
        # The same text without terms is not answered from the cache.
        plain = (await service.translate(replace(request, glossary=None)))[0]
        assert "glossary_not_placed" not in [doubt.kind for doubt in plain.doubts]
        assert "Rüden" not in plain.text

    asyncio.run(run())


def test_pairs_of_a_request_guide_it_and_no_other(using: Using, en_de: str) -> None:
    """Neither by the model, nor by a batch, a cache or a common search."""
    target = "Hunde"
    request = Request(texts=["Two dogs play in the snow.", "A man."], source="en", target="de")
    pairs = [(request.texts[0], target)]
    plain = heed.load(en_de)(list(request.texts))
    requests = [request, *(replace(request, memory=[(pairs[0][0], t)]) for t in (target, "Nein"))]
    translator = heed.load(en_de)
    heed.remember(translator, pairs)
    wanted = [plain, [target, plain[1]], ["Nein", plain[1]]]
    assert translator(list(request.texts)) == wanted[1] != plain

    async def run() -> None:
        service = using(en_de)
        for _ in range(2):  # together, and then from the cache
            found = await asyncio.gather(*(service.translate(one) for one in requests * 2))
            assert [[one.text for one in answers] for answers in found] == wanted * 2
        assert service.models.open("en-de").reader.memories == ()

    asyncio.run(run())


def test_pairs_of_a_request_are_read_like_its_texts(using: Using, en_de: str) -> None:
    """Without protected spans, tags are words."""
    source, target = "Two <b>dogs</b>", "<b>Ja"
    request = Request(
        texts=[source], source="en", target="de", memory=[(source, target)], protect=["none"]
    )

    async def run() -> None:
        (found,) = await using(en_de).translate(request)
        assert found.text == target

    asyncio.run(run())


def test_pairs_are_not_read_for_what_the_cache_holds(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read = 0

    def counted(*arguments: Any, **named: Any) -> int:
        nonlocal n_read
        n_read += 1
        return add_pairs(*arguments, **named)

    monkeypatch.setattr("heed.serve.work.translating.add_pairs", counted)
    request = Request(texts=["A man."], source="en", target="de", memory=[("A man.", "Hunde")])

    async def run() -> None:
        service = using(en_de)
        for _ in range(3):
            assert (await service.translate(request))[0].text == "Hunde"

    asyncio.run(run())
    assert n_read == 1


@pytest.mark.parametrize(("source", "n_texts"), [("auto", 5), ("en", 100)])
def test_many_short_texts_are_read_beside_the_event_loop(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch, source: str, n_texts: int
) -> None:
    """Detecting the languages of 1,000 texts held all other requests up for a quarter second."""
    monkeypatch.setattr(service_module, "read_texts", beside_loop(read_texts))
    texts = [f"a{number}" for number in range(n_texts)]
    answers = asyncio.run(using(en_de).translate(Request(texts=texts, source=source, target="de")))
    assert len(answers) == n_texts


def test_expressions_of_a_client_are_run_beside_the_event_loop(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may take a second, in which no other request would be answered."""
    n_runs = 0

    def noting(run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            nonlocal n_runs
            n_runs += 1
            return run(*arguments)

        return noted

    noted = noting(beside_loop(expressions.compiled))
    for module in ("expressions", "rules"):
        monkeypatch.setattr(f"heed.text.protection.{module}.compiled", noted)
    request = Request(texts=["A b."], source="en", target="de", protect=["b+", "d+"])
    asyncio.run(using(en_de).translate(request))
    assert n_runs >= 4


@pytest.mark.parametrize(("n_texts", "n_pairs"), [(40, 0), (1, 40)])
def test_expressions_of_a_request_share_their_time(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch, n_texts: int, n_pairs: int
) -> None:
    """All of its texts and pairs count; before, each had a second for each expression."""
    seconds = count()
    monkeypatch.setattr(f"{expressions.__name__}.time.thread_time", lambda: float(next(seconds)))
    monkeypatch.setattr(service_module, "PATTERNS_S", 20.0)
    service = using(en_de)

    def request(n_texts: int, n_pairs: int) -> Request:
        texts = [f"A b {number}." for number in range(n_texts)]
        pairs = [(f"A b {number}.", "Ein B.") for number in range(n_pairs)]
        return Request(texts=texts, source="en", target="de", protect=["b+"], memory=pairs)

    asyncio.run(service.translate(request(1, 0)))
    with pytest.raises(Refusal, match="patterns take more than 20 s for all texts") as caught:
        asyncio.run(service.translate(request(n_texts, n_pairs)))
    assert caught.value.status == 400


def test_a_request_that_is_over_is_read_no_further(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_read, has_begun, is_over = 0, threading.Event(), threading.Event()
    parts = LineReader.parts

    def slow(*arguments: Any) -> list[Chunk]:
        nonlocal n_read
        n_read += 1
        has_begun.set()
        assert is_over.wait(60)
        return parts(*arguments)

    monkeypatch.setattr(LineReader, "parts", slow)
    texts = [f"A man {number}." for number in range(1000)]

    async def run() -> None:
        request = Request(texts=texts, source="en", target="de")
        asking = asyncio.ensure_future(using(en_de).translate(request))
        assert await asyncio.to_thread(has_begun.wait, 60)
        asking.cancel()
        with suppress(asyncio.CancelledError):
            await asking
        is_over.set()

    asyncio.run(run())  # waits for the thread
    assert n_read == 1


def test_a_model_is_given_back_also_if_the_end_of_another_fails(
    using: Using, en_de: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request in two languages uses two models."""
    ended = []

    async def fail(self: Use, *_: object) -> None:
        ended.append(self._name)
        await end(self)
        raise OSError(f"{self._name} cannot be given back")

    end = Use.__aexit__
    service = using(en_de, make_model(tmp_path / "fr-de", "fr", "de"))
    asked = Request(texts=[SENTENCES[0], "Deux chiens jouent dans la neige."], target="de")
    monkeypatch.setattr(Use, "__aexit__", fail)
    with pytest.raises(OSError, match="cannot be given back"):
        asyncio.run(service.translate(asked))
    assert sorted(ended) == ["en-de", "fr-de"]


def test_a_model_that_is_read_slowly_does_not_outlast_the_deadline(
    using: Using, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()

    def slow(folder: Path, name: str, guides: Guides) -> Opened:
        gate.wait(10)
        return open_version(folder, name, guides)

    monkeypatch.setattr(models_module, "open_version", slow)

    async def run() -> None:
        service = using(en_de, timeout_s=0.1)
        for asking in (
            service.translate(Request(texts=["A man."], source="en", target="de")),
            service.score("A man.", "Ein Mann.", Direction(source="en", target="de")),
        ):
            with pytest.raises(Refusal, match="not ready in time") as caught:
                await asking
            assert caught.value.status == 504
        gate.set()

    asyncio.run(run())


def test_every_answer_is_of_exactly_one_version_while_models_change(
    using: Using, tmp_path: Path
) -> None:
    folder = Path(make_model(tmp_path / "en-de", "en", "de", seed=1))
    texts = ["<b>Two dogs</b> play in the snow.", "A man is riding a bike."]
    request = Request(texts=texts, source="en", target="de", format="html")
    versions: list[list[str]] = []
    served: list[list[str]] = []

    async def client(service: Service, stop: asyncio.Event) -> None:
        while not stop.is_set():
            served.append([answer.text for answer in await service.translate(request)])
            await asyncio.sleep(0.001)

    async def run() -> None:
        service = using(str(folder), threads=2, cache_mb=1)
        stop = asyncio.Event()
        clients = [asyncio.create_task(client(service, stop)) for _ in range(16)]
        for seed in (1, 2, 3, 4):
            make_model(folder, "en", "de", seed=seed)
            alone = using(str(folder))
            versions.append([answer.text for answer in await alone.translate(request)])
            service.models.refresh()
            n_served = len(served)
            while not (served and served[-1] == versions[-1] and len(served) > n_served + 32):
                await asyncio.sleep(0.001)
        stop.set()
        await asyncio.gather(*clients)

    asyncio.run(run())
    assert all(answer in versions for answer in served)
    assert all(version in served for version in versions)
    assert len({tuple(version) for version in versions}) == 4
