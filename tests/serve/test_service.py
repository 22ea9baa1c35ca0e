"""Requests are translated as `heed.load` translates them."""

from tests.serve.conftest import SENTENCES, Serve

import heed


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
