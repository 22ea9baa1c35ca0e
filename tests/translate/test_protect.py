"""Every protected span of a source stands in its translation once, whatever the model writes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.options import DecodeOptions
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.text.extend import with_controls
from heed.text.normalize import normalize
from heed.text.protected import Rules, find_spans, with_things
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.assembly import filled
from heed.translate.lines import Line
from heed.translate.protect import Draft, links_of, restore
from heed.translate.result import Doubt, Translation
from heed.translate.source import make_source
from heed.translate.translator import Translator

SENTENCES = [
    "The dog sleeps on the house, and 3 cats run <b>away</b>.",
    "Zwei Hunde rennen mit %s {name} über die Straße: 1.234,50 € & Co.",
    'A man reads "a book" in 2011 at https://example.com/a?b=1; 狗在睡觉。',
    "כלב ישן ליד הבית",
]
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 3},
    "alternatives": {"beam_size": 3, "alternatives": 2},
    "sample": {"sample": True, "temperature": 3.0, "seed": 7},
    "alignment": {"beam_size": 2, "alignment": True},
    "no repeats": {"beam_size": 2, "no_repeat_ngram_size": 1, "repetition_penalty": 2.0},
}


def make_translator(vocab: Vocab, seed: int, **changes: Any) -> Translator:
    """A translator with random weights."""
    config = ModelConfig(
        src_vocab_size=vocab.size,
        tgt_vocab_size=vocab.size,
        d_model=16,
        n_heads=2,
        d_ff=16,
        n_encoder_layers=1,
        n_decoder_layers=1,
    )
    torch.manual_seed(seed)
    network = build_model(config).eval()
    with torch.no_grad():  # Far from uniform: such a model loops.
        for weights in network.parameters():
            weights *= 3.0
    model = TorchDecodable(network, torch.device("cpu"))
    return Translator(model, vocab, vocab, options=DecodeOptions(max_length=24), **changes)


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(SENTENCES * 5, size=340)


@pytest.fixture(scope="module", params=[0, 1])
def plain(request: pytest.FixtureRequest, vocab: Vocab) -> Translator:
    """A model that was trained without slots."""
    return make_translator(vocab, request.param)


@pytest.fixture(scope="module", params=[0, 1])
def slotted(request: pytest.FixtureRequest, vocab: Vocab) -> Translator:
    return make_translator(with_controls(vocab, SLOT_PIECES), request.param)


SPANS = ["%s", "%1$d", "{name}", "{{x}}", "1,234.50", "7", "7", "https://a.b/c?d=1", "a.b@c.org"]
SPANS += ["&amp;", "<br/>", "2011-05-03", "${x}", "%%", "</i>", "<x>"]
WORDS = ["the", "dog", "sleeps", "cat's", "狗在", "ישן", "שלום", "%", "<", "{", ".", ",", "(", "`"]


@st.composite
def lines(draw: st.DrawFn, depth: int = 0) -> str:
    """Words with spans and pairs of tags, some close to each other."""
    parts: list[str] = []
    for _ in range(draw(st.integers(0 if depth else 1, 5))):
        kind = draw(st.sampled_from(["word", "word", "span", "pair"]))
        if kind == "pair" and depth < 3:
            name = draw(st.sampled_from(["b", "i", "a", "b"]))
            attribute = draw(st.sampled_from(["", ' href="7"']))
            parts.append(f"<{name}{attribute}>{draw(lines(depth + 1))}</{name}>")
        else:
            parts.append(draw(st.sampled_from(SPANS if kind == "span" else WORDS)))
        parts.append(draw(st.sampled_from([" ", " ", ""])))
    return "".join(parts)


Tree = tuple[str, tuple["Tree", ...]]


def tree_of(text: str, rules: Rules, wanted: frozenset[str] | None = None) -> Any:
    """The spans of a text, each with what is inside it; brothers in any order.

    A span that the source has not is left out.
    """
    spans = find_spans(text, rules)
    stack: list[list[Any]] = [[]]
    for span in spans:
        written = text[span.start : span.end]
        if wanted is not None and written not in wanted:
            continue
        if span.kind == "close":
            inside = stack.pop()
            stack[-1][-1] = (*stack[-1][-1], written, tuple(sorted(inside)))
            continue
        stack[-1].append((written,))
        if span.kind == "open":
            stack.append([])
    assert len(stack) == 1
    return sorted(stack[0])


def check(source: str, answer: str, rules: Rules | None = None) -> None:
    rules = rules or Rules.default()
    source = normalize(source)
    wanted = frozenset(source[span.start : span.end] for span in find_spans(source, rules))
    assert tree_of(answer, rules, wanted) == tree_of(source, rules), (source, answer)


def test_the_check_sees_what_is_wrong() -> None:
    check("a <b>%s</b> 7 7", "7 <b>x %s</b> b 7")
    for answer in ("<b>%s</b> 7", "%s<b></b> 7 7", "<b>%s</b> 7 7 7", "</b>%s<b> 7 7"):
        with pytest.raises(AssertionError):
            check("a <b>%s</b> 7 7", answer)


def require_kept(translator: Translator, sources: list[str], **options: Any) -> None:
    for source, found in zip(sources, translator.translate(sources, **options), strict=True):
        for one in (found, *found.alternatives):
            check(source, one.text)
            assert len(one.tokens) <= len(one.token_scores) <= len(one.tokens) + 1
            if options.get("alignment") and one.alignment is not None:
                assert len(one.alignment) == len(one.tokens)
                assert all(len(row) == len(one.source_tokens) for row in one.alignment)


# Eight lines in one batch take little longer than one alone, and are tested as well.
batches = st.lists(lines(), min_size=8, max_size=8)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=10, deadline=None)
@given(sources=batches)
def test_spans_survive_a_model_without_slots(
    plain: Translator, way: str, sources: list[str]
) -> None:
    require_kept(plain, sources, **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=10, deadline=None)
@given(sources=batches)
def test_spans_survive_a_model_with_slots(
    slotted: Translator, way: str, sources: list[str]
) -> None:
    require_kept(slotted, sources, **WAYS[way])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_slots", [False, True])
def test_spans_leave_a_required_beginning_as_it_is(vocab: Vocab, way: str, has_slots: bool) -> None:
    """A prefix may end inside a word, open a pair, and put spans outside their pair."""
    sources = ["<b>The dog</b> sleeps %s: 7.", "%s: 7 <b>a {name} {{x}}</b>"]
    prefixes = ["Hu", "<b>Hu", "7", "%s: <b>ein", "<b>Hund</b> x", "{name} ein"]
    texts, begun = zip(*((one, prefix) for one in sources for prefix in prefixes), strict=True)
    for seed in range(3):
        own = with_controls(vocab, SLOT_PIECES) if has_slots else vocab
        translator = make_translator(own, seed)
        answers = translator.translate(texts, prefixes=begun, **WAYS[way])
        for source, prefix, found in zip(texts, begun, answers, strict=True):
            for one in (found, *found.alternatives):
                assert one.text.startswith(prefix)
                if "</b>" not in prefix and "{name}" not in prefix:
                    check(source, one.text)


@pytest.mark.parametrize("has_slots", [False, True])
def test_a_required_beginning_may_hold_one_half_of_a_pair(vocab: Vocab, has_slots: bool) -> None:
    source = "The **dog** sleeps [on <x>the</x> _house_](x) 7"
    prefixes = ["**Hu", "Der **Hund** [x", "[x <x>y"]
    others = ["Der **", "**Hund [ein", "**H _7 H"]  # what follows may leave no place to close them
    for seed in range(3):
        own = with_controls(vocab, SLOT_PIECES) if has_slots else vocab
        begun = prefixes + others
        answers = make_translator(own, seed).translate([source] * len(begun), prefixes=begun)
        assert all(map(str.startswith, [found.text for found in answers], begun))
        for found in answers[: len(prefixes)]:
            marks = ["**", "<x>", "</x>", "](x)", "7"]
            assert [found.text.count(mark) for mark in marks] == [2, 1, 1, 1, 1], found.text


@pytest.mark.parametrize("line", ["Two dogs. <b>{}</b> A man", "<b>{}</b>", "42 {}"])
def test_a_cut_line_has_an_alignment_of_all_its_parts(plain: Translator, line: str) -> None:
    line = line.format("The dog sleeps on the house. " * 80)
    (found,) = plain.translate([line], alignment=True, beam_size=1)
    assert found.status == "split"
    assert found.alignment is not None
    assert len(found.alignment) == len(found.tokens)
    assert {len(row) for row in found.alignment} == {len(found.source_tokens)}
    assert len(found.tokens) <= len(found.token_scores) <= len(found.tokens) + 1
    (number,) = plain.translate(["42"], alignment=True)
    assert number.alignment == [[1.0]]


def test_what_is_wrong_with_texts_of_messages_is_told(vocab: Vocab) -> None:
    message, other = "{n, plural, one {sleeps} other {run}}", "{g, select, other {cats}}"
    line = f"The dog {message} and {other} run"
    (chunk,) = make_translator(vocab, 0).reader.parts(Line(line), 0, [])
    text = f"Hund {message} und {other} weg"

    def doubt(kind: str, start: int, end: int) -> Doubt:
        return Doubt(kind=kind, sentence=kind, start=start, end=end)

    places = {"before": (0, 4), "message": (5, 5 + len(message)), "inside": (7, 9)}
    places |= {"across": (2, 20), "between": (text.index("und"), text.index("und") + 3)}
    places |= {"behind": (len(text) - 3, len(text)), "all": (0, len(text))}
    numbers = Doubt(kind="numbers", sentence="numbers")
    doubts = (*(doubt(kind, *place) for kind, place in places.items()), numbers)
    behind = replace(doubts[5], start=places["behind"][0] - 5, end=places["behind"][1] - 5)
    second = Translation(text=text[5:], doubts=(behind,))
    outer = Translation(text=text, doubts=doubts, confidence=0.9, alternatives=(second,))
    loop = doubt("loop", 0, 15)
    done = [
        outer,
        Translation(
            text="schläft schläft", status="max_length", confidence=0.2, doubts=(loop, numbers)
        ),
        Translation(text="rennen", confidence=0.5, status="split"),
        Translation(text="es", confidence=0.7),
    ]
    found = filled(chunk, iter(done))
    new = "{n, plural, one {schläft schläft} other {rennen}}"
    assert found.text == f"Hund {new} und {{g, select, other {{es}}}} weg"
    assert (found.status, found.confidence) == ("max_length", 0.2)
    told = {each.kind: each for each in found.doubts}
    assert len(told) == len(found.doubts) == len(doubts) + 1
    for kind, wanted in {
        "before": "Hund",
        "message": new,
        "inside": new,
        "across": f"{'Hund'[2:]} {new}",
        "between": "und",
        "behind": "weg",
        "all": found.text,
    }.items():
        assert found.text[told[kind].start : told[kind].end] == wanted
    assert told["numbers"] == numbers
    assert told["loop"] == replace(loop, start=None, end=None)
    (second,) = found.alternatives
    assert second.text == found.text[5:]
    assert (second.status, second.confidence) == ("max_length", None)
    assert second.text[second.doubts[0].start : second.doubts[0].end] == "weg"


def test_a_text_that_breaks_its_message_is_not_told_about(vocab: Vocab) -> None:
    line = "{n, plural, one {sleeps} other {run}}"
    (chunk,) = make_translator(vocab, 0).reader.parts(Line(line), 0, [])
    wrong = Translation(text="}", status="max_length", confidence=0.1)
    found = filled(chunk, iter([Translation(text=line), wrong, wrong]))
    assert (found.text, found.status, found.confidence) == (line, "ok", None)
    assert [each.kind for each in found.doubts] == ["untranslated"]


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_message_within_another_one_or_within_a_span_is_not_changed_there(
    vocab: Vocab, is_turned: bool
) -> None:
    inner = "{n, plural, other {run}}"
    outer = f"{{g, select, other {{cats {inner}}}}}"
    kept = f"[{inner}]"
    line = " and ".join([inner, kept, outer][:: -1 if is_turned else 1])
    rules = Rules.of([r"\[[^]]*\]"])
    (chunk,) = make_translator(vocab, 0).reader.parts(Line(line, rules=rules), 0, [])
    of_outer = Translation(text=f"Katzen {inner}")
    done = [Translation(text=line), *[Translation(text="rennen")] * 3]
    done.insert(1 if is_turned else 2, of_outer)
    found = filled(chunk, iter(done))
    parts = ["{n, plural, other {rennen}}", kept]
    parts.append("{g, select, other {Katzen {n, plural, other {rennen}}}}")
    assert found.text == " and ".join(parts[:: -1 if is_turned else 1])


def restored(
    line: str,
    written: str,
    names: tuple[str, ...] = (),
    *,
    reads: Sequence[int] = (),
    lang: str = "",
) -> str:
    """What becomes of the text that a model wrote for a line; spans that it has are found.

    Args:
        line: the source.
        written: the text.
        names: names in the line.
        reads: for each word of the text, the word of the line that it reads; none = no alignment.
        lang: code of the language of the line.
    """
    places = [(line.index(name), line.index(name) + len(name)) for name in names]
    rules = Rules.default()
    spans = with_things(find_spans(line, rules), places, "name")
    source = make_source(line, spans, rules, None, lang=lang)
    marks = []
    ends: dict[str, int] = {}  # of the last span with this text
    for index, span in enumerate(source.spans):
        if (start := written.find(span.text, ends.get(span.text, 0))) >= 0:
            ends[span.text] = start + len(span.text)
            marks.append((start, ends[span.text], index))
    tokens = [f"▁{word}" for word in written.split()] if reads else [written]
    words = [f"▁{word}" for word in source.read.split()] if reads else [source.read]
    alignment = np.eye(len(words))[list(reads)].tolist() if reads else None
    draft = Draft(source=source, text=written, marks=tuple(sorted(marks)), tokens=tokens)
    return restore(draft, links_of(draft, words, alignment), is_aligned=True).text


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("He holds 👍 and ❤️ balls.", "Er hält ❤️ Bälle.👍", "Er hält ❤️ Bälle. 👍"),
        ("Run at 12:30 now.", "Lauf.12:30", "Lauf. 12:30"),
        ("{x} runs <b>so</b>.", "Es rennt,{x}:<b>so</b>.", "Es rennt, {x}: <b>so</b>."),
        ("at {h}:{m}, and (%s)", "um {h}:{m} und (%s)", "um {h}:{m} und (%s)"),
        ("ends.%s", "endet.%s", "endet.%s"),
        ("He holds 👍 balls.", "他拿着球.👍", "他拿着球.👍"),
    ],
)
def test_a_span_after_a_mark_is_spaced_as_in_the_source(
    line: str, written: str, expected: str
) -> None:
    assert restored(line, written) == expected


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("a **red** shirt", "ein ** rotes ** Hemd", "ein **rotes** Hemd"),
        ("a **red** shirt", "ein** rotes **Hemd, so", "ein **rotes** Hemd, so"),
        ("a **_red_** shirt.", "ein ** _ rotes _ ** .", "ein **_rotes_** ."),
        ("*The* dog", "*Der *Hund", "*Der* Hund"),
        ("~~a *red* b~~", "~~eins * * zwei~~", "~~*eins* zwei~~"),
        ("*The* dog", "** Der Hund", "*Der* Hund"),
        ("The ~~red~~ dog", "Der ~~rot~~e Hund", "Der ~~rot~~ e Hund"),
        ("The <b>red</b> [dog](a)", "Der<b> rote</b> [ Hund](a)", "Der<b> rote</b> [ Hund](a)"),
        ("_$HOME house_", "_$HOME_ Haus.", "_$HOME_ Haus."),
        ("_a 12 dog_", "_ein Hund12_", "_ein Hund 12_"),
    ],
)
def test_no_blank_is_inside_the_marks_of_emphasis(line: str, written: str, expected: str) -> None:
    assert restored(line, written) == expected


def test_no_blank_comes_between_a_name_and_a_mark_of_emphasis() -> None:
    line = "__%s Xanthor man__"
    assert restored(line, "__ein %sXanthor__.", ("Xanthor",)) == "__ein %s Xanthor__."


@pytest.mark.parametrize("mark", [".", ",", "!", "?", ";", ":", '"', ")"])
def test_no_blank_comes_between_a_name_and_a_mark(mark: str) -> None:
    line = "A man named Xanthor runs."
    assert restored(line, f"Da rennt Xanthor{mark}", ("Xanthor",)) == f"Da rennt Xanthor{mark}"
    assert restored(line, f"Da rennt Xanthors{mark}", ("Xanthor",)).count("Xanthor ") == 1


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("Two dogs, rule 2.", "2 Hunde, Regel 2.", "2 Hunde, Regel 2."),
        ("Rule 2: one dog, two cats.", "Regel 2: 1 Hund, 2 Katzen.", "Regel 2: 1 Hund, 2 Katzen."),
        ("Two dogs, rule 2.", "2 Hunde, Regel 2 2.", "2 Hunde, Regel 2."),
        ("Dogs, rule 2.", "Hunde, Regel 2 2.", "Hunde, Regel 2."),
        ("Two dogs, {2}.", "2 Hunde, {2} {2}.", "2 Hunde, {2}."),
    ],
)
def test_a_second_copy_of_a_number_stays_where_the_source_spells_it_as_a_word(
    line: str, written: str, expected: str
) -> None:
    assert restored(line, written, lang="en") == expected


def test_a_name_beside_another_span_stays_in_its_place() -> None:
    line = "Xanthor runs at 12:30."
    assert restored(line, "Um 12:30 Xanthor.", ("Xanthor",)) == "Um 12:30 Xanthor."


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("Dogs run 👍 now.", "Dogs run now.", "Dogs run 👍 now."),
        ("Dogs run 👍.", "Dogs run.", "Dogs run 👍."),
        ("Dogs run (👍) now.", "Dogs run () now.", "Dogs run (👍) now."),
        ("Dogs run👍 now.", "Dogs run now.", "Dogs run👍 now."),
        ("狗跑👍。", "Dogs run.", "Dogs run 👍."),
        ("Dogs run 👍.", "狗跑。", "狗跑👍。"),
    ],
)
def test_a_span_that_is_put_in_is_spaced_as_in_the_source(
    line: str, written: str, expected: str
) -> None:
    assert restored(line, written) == expected


def test_a_span_in_place_of_a_word_is_spaced_as_the_word() -> None:
    assert restored('Dogs run "12" now.', 'Dogs run "zwölf" now.') == 'Dogs run "12" now.'


@pytest.mark.parametrize(
    ("reads", "expected"),
    [
        ((0, 2, 3, 4), "Regel 7 warte 30 Monate"),  # `7` was written for `30`
        ((0, 2, 1, 4), "Regel warte 30 7 Monate"),
    ],
)
def test_a_number_in_place_of_another_is_no_copy(reads: tuple[int, ...], expected: str) -> None:
    assert restored("Rule 7 wait 30 months", "Regel warte 7 Monate", reads=reads) == expected
