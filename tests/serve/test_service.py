"""Requests are translated as `heed.load` translates them."""

import asyncio
import random
from contextlib import suppress
from typing import Any

from tests.serve.conftest import SENTENCES, Serve

import heed
from heed.serve.request import Request
from heed.serve.run import make_service
from heed.serve.service import Service
from heed.serve.settings import ServeSettings, Work


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
