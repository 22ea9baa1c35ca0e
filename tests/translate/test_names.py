"""Names that a model cannot know stand in its translation as they were written."""

import pytest
from tests.translate.test_protect import SENTENCES, make_translator

from heed.text.extend import with_controls
from heed.text.known import KnownWords
from heed.text.protected import Rules
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.glossary.glossary import Glossary
from heed.translate.lines import Line
from heed.translate.translator import Translator


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return with_controls(train_vocab(SENTENCES * 5, size=340), SLOT_PIECES)


@pytest.fixture(scope="module")
def known() -> KnownWords:
    names = ("Marika", "Obeto", "Quilloz")
    pairs = [(sentence, "x") for sentence in SENTENCES] * 2
    pairs += [(f"The dog of {name} sleeps", f"Hund von {name}") for name in names]
    return KnownWords.learn(lambda: pairs)


@pytest.fixture(scope="module")
def translator(vocab: Vocab, known: KnownWords) -> Translator:
    vocab.known_words = known
    return make_translator(vocab, 0)


@pytest.mark.parametrize("way", [{}, {"beam_size": 3}, {"sample": True, "seed": 3}])
def test_names_are_copied_whatever_the_model_writes(
    translator: Translator, way: dict[str, object]
) -> None:
    answers = translator(
        ["The dog of Trondvik sleeps.", "Olgrip: the dog reads <b>Vandar</b> %s.", "Слово Пример"],
        **way,
    )
    assert answers[0].count("Trondvik") == 1
    assert answers[1].count("Olgrip") == answers[1].count("Vandar") == 1
    assert answers[1].count("%s") == 1
    assert answers[2] == "Слово Пример"


def test_names_are_spans_of_the_part_that_is_searched(translator: Translator) -> None:
    (chunk,) = translator.reader.parts(Line("<b>The</b> dog of Trondvik reads 7 books."), 0, [])
    assert chunk.source is not None
    assert [span.text for span in chunk.source.spans] == ["<b>", "</b>", "Trondvik", "7"]
    first, second = chunk.source.spans[:2]
    assert (first.kind, second.kind) == ("open", "close")


def test_without_rules_or_slots_no_name_is_protected(vocab: Vocab, known: KnownWords) -> None:
    line = "The dog of Trondvik sleeps"
    vocab.known_words = known
    reader = make_translator(vocab, 0).reader
    (chunk,) = reader.parts(Line(line, rules=Rules.none()), 0, [])
    assert chunk.source is None
    plain = train_vocab(SENTENCES * 5, size=340)
    plain.known_words = known
    (chunk,) = make_translator(plain, 0).reader.parts(Line(line), 0, [])
    assert chunk.source is None


@pytest.mark.parametrize(
    ("line", "term", "read"),
    [
        ("the dog of marika sleeps", "marika", "The dog of marika sleeps"),
        ("THE DOG OF MARIKA SLEEPS", "MARIKA", "The dog of MARIKA sleeps"),
    ],
)
def test_a_term_that_must_be_written_so_keeps_its_case(
    translator: Translator, line: str, term: str, read: str
) -> None:
    """Else it would not be found in the text that the model reads, or be written otherwise."""
    glossary = Glossary.of({term: "="})
    (chunk,) = translator.reader.parts(Line(line, glossary=glossary), 0, [])
    text = chunk.source.text if chunk.source else translator.src_vocab.decode(chunk.src_ids)
    assert text == read
    (found,) = translator.translate([line], glossary=glossary)
    assert term in found.text or found.doubts


def test_a_name_that_is_a_term_of_the_glossary_is_translated(translator: Translator) -> None:
    glossary = Glossary.of({"Trondvik": "Drontheim", "Слово": "Wort"})
    line = "The dog of Trondvik reads Vandar."
    (chunk,) = translator.reader.parts(Line(line, glossary=glossary), 0, [])
    assert chunk.source is not None
    assert [span.text for span in chunk.source.spans] == ["Vandar"]
    named, written = translator.translate([line, "The Слово Пример sleeps."], glossary=glossary)
    assert "Drontheim" in named.text and "Trondvik" not in named.text
    assert named.text.count("Vandar") == 1
    assert "Wort" in written.text and "Слово" not in written.text
