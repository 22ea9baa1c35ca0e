"""`Vocab`, `TokenizerConfig`, `train_vocab` and `choose_vocab_size`."""

import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.errors import ConfigError, DataError, FormatError
from heed.text.vocab import Kind, TokenizerConfig, Vocab, choose_vocab_size, train_vocab

KINDS: tuple[Kind, ...] = get_args(Kind)

ENGLISH = "the a man woman dog child blue red house street runs sleeps reads on in with and two"
GERMAN = "der die das ein Mann Frau Hund Kind blaues rotes Haus Straße läuft schläft liest auf mit"
WORDS = [*ENGLISH.split(), *GERMAN.split()]

# What people type to see what happens, and what SentencePiece treats specially inside.
ODD_TEXTS = [
    "",
    " ",
    "  two  blanks  ",
    "▁",
    "▁▁ ▁a▁ \ufdd0▁\ufdd0",
    "\ufdd0",
    "\0",
    "a\0b",
    "a\r\nb\n",
    "\r",
    "\n",
    "\t",
    "\u2028\u2029\x85\x0b\x0c\x1c",
    "\ufeffword\ufeff",
    "👩\u200d👩\u200d👧 👍🏽",
    "e\u0301 é ﬁ ① Ａ",
    "\ud7ff\ue000\uffff\U0010ffff",
    "<pad> <unk> <s> </s> <mask> <2de> <2en> <0x41> <2xx>",
    "<2de>",
    "</s>",
    " ⁇ ▅ ⁇",
    "the unknownword xyzzy Hund",
    " Hund",
    "xyzzy",
    " xyzzy",
    "عربي עברית हिन्दी 漢字かな",
]


def sentences(n: int = 400) -> Iterator[str]:
    source = random.Random(0)
    for _ in range(n):
        yield " ".join(source.choices(WORDS, k=8)) + "."


@pytest.fixture(scope="module")
def vocabs() -> dict[str, Vocab]:
    return {
        kind: train_vocab(sentences(), size=400, kind=kind, languages=["de", "en"])
        for kind in KINDS
    }


@pytest.fixture(scope="module")
def vocab(vocabs: dict[str, Vocab]) -> Vocab:
    return vocabs["unigram"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_come_back_unchanged(vocabs: dict[str, Vocab], kind: Kind, text: str) -> None:
    vocab = vocabs[kind]
    ids = vocab.encode(text)
    assert vocab.decode(ids) == text
    assert not set(ids) & set(vocab.control_ids)


# Valid text, thick with what is special; every other character may appear as well.
TEXTS = st.lists(
    st.one_of(st.sampled_from([*WORDS, *ODD_TEXTS, " "]), st.text(st.characters(codec="utf-8")))
).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
@settings(max_examples=150)
def test_every_text_comes_back_unchanged_and_yields_no_control_id(
    vocabs: dict[str, Vocab], kind: Kind, text: str
) -> None:
    """Claim 20."""
    vocab = vocabs[kind]
    ids = vocab.encode(text)
    assert vocab.decode(ids) == text
    assert not any(vocab.is_control(id) for id in ids)
    drawn = vocab.sample(text, alpha=0.3, seed=len(text))
    assert vocab.decode(drawn) == text
    assert not any(vocab.is_control(id) for id in drawn)


@given(st.text(st.characters()))
@example("\ud83d\ude00")
@settings(max_examples=150)
def test_lone_surrogates_become_replacement_characters(vocab: Vocab, text: str) -> None:
    expected = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    assert vocab.decode(vocab.encode(text)) == expected
    assert vocab.decode(vocab.sample(text, alpha=0.1, seed=0)) == expected


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=150)
def test_any_ids_decode_to_valid_text(
    vocabs: dict[str, Vocab], kind: Kind, data: st.DataObject
) -> None:
    vocab = vocabs[kind]
    ids = data.draw(st.lists(st.integers(0, vocab.size - 1)))
    vocab.decode(ids).encode()


def test_a_hundred_thousand_characters_without_a_blank_are_no_trouble(
    vocabs: dict[str, Vocab],
) -> None:
    text = "ab" * 50_000
    for vocab in vocabs.values():
        assert vocab.decode(vocab.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_special_ids_are_where_they_always_are(vocabs: dict[str, Vocab], kind: Kind) -> None:
    """Claims 10, 11: a role is a number; what the piece is called does not matter."""
    vocab = vocabs[kind]
    assert (vocab.pad_id, vocab.unk_id, vocab.bos_id, vocab.eos_id, vocab.mask_id) == (
        0,
        1,
        2,
        3,
        4,
    )
    assert vocab.languages == ("de", "en")
    assert (vocab.language_id("de"), vocab.language_id("en")) == (5, 6)
    assert vocab.control_ids == tuple(range(7))
    assert vocab.pieces(vocab.control_ids) == [
        *("<pad>", "<unk>", "<s>", "</s>", "<mask>", "<2de>", "<2en>")
    ]
    assert vocab.is_control(vocab.language_id("de"))
    assert not vocab.is_control(7)


def test_control_ids_are_silent_in_a_text(vocab: Vocab) -> None:
    ids = [vocab.language_id("de"), vocab.bos_id, *vocab.encode("ein Hund"), vocab.unk_id]
    assert vocab.decode([*ids, vocab.eos_id, vocab.pad_id, vocab.pad_id]) == "ein Hund"


def test_bytes_that_are_no_utf8_become_replacement_characters(vocab: Vocab) -> None:
    first, _, last = vocab.encode("Ω")
    assert vocab.pieces([first, last]) == ["▁", "<0xA9>"]
    assert vocab.decode([last, *vocab.encode("a")]) == "\ufffd a"


def test_known_words_are_pieces_and_unknown_ones_are_bytes(vocabs: dict[str, Vocab]) -> None:
    """Claim 16."""
    vocab = vocabs["word"]
    assert vocab.pieces(vocab.encode("the Hund")) == ["▁the", "▁Hund"]
    assert vocab.pieces(vocab.encode("the xy")) == ["▁the", "<0x20>", "<0x78>", "<0x79>"]
    chars = vocabs["char"]
    assert chars.pieces(chars.encode("ein Ω")) == ["▁", "e", "i", "n", "▁", "<0xCE>", "<0xA9>"]


def test_a_worked_sentence_is_read_one_character_at_a_time() -> None:
    """Claim 4."""
    vocab = train_vocab(["Why do we work?", "为什么要工作？"] * 50, size=300, kind="char")
    assert vocab.pieces(vocab.encode("为什么要工作？")) == ["▁", *"为什么要工作？"]


def test_each_digit_is_a_piece_of_its_own() -> None:
    vocab = train_vocab(["in 2012 2012 2012 2012"] * 50, size=300)
    assert vocab.pieces(vocab.encode("2012"))[-4:] == ["2", "0", "1", "2"]


def test_an_unknown_language_is_named_with_the_known_ones(vocab: Vocab) -> None:
    with pytest.raises(ConfigError, match=r"one the vocabulary has a tag for \(de, en\).* 'fr'"):
        vocab.language_id("fr")
    with pytest.raises(ConfigError, match=r"\(none\)"):
        train_vocab(["a"], size=300).language_id("fr")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_sample_depends_on_its_seed_and_on_nothing_else(
    vocabs: dict[str, Vocab], kind: Kind
) -> None:
    text = "der Mann schläft und die Frau liest auf der Straße"
    vocab = vocabs[kind]
    first = [vocab.sample(text, alpha=0.2, seed=seed) for seed in range(20)]
    again = [vocab.sample(text, alpha=0.2, seed=seed) for seed in reversed(range(20))]
    assert first == again[::-1]
    assert len({tuple(ids) for ids in first}) > 1
    assert {vocab.decode(ids) for ids in first} == {text}


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_random_choices_are_the_same_in_every_process(kind: Kind, monkeypatch: Any) -> None:
    """Those of SentencePiece are not."""
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_vocab as t;"
        "import heed.text.vocab; heed.text.vocab._MAX_SENTENCES = 150;"
        f"vocab = t.train_vocab(t.sentences(), size=400, kind={kind!r});"
        "print(vocab.hash, [vocab.sample('der Mann', alpha=0.3, seed=n) for n in range(9)])"
    )
    run = [sys.executable, "-c", code]
    found = {subprocess.run(run, capture_output=True, check=True).stdout for _ in range(2)}
    assert len(found) == 1


@pytest.mark.parametrize("kind", ["char", "word"])
def test_what_can_be_cut_in_one_way_only_is_sampled_that_way(
    vocabs: dict[str, Vocab], kind: Kind
) -> None:
    vocab = vocabs[kind]
    assert vocab.sample("der ▁ Mann", alpha=0.2, seed=1) == vocab.encode("der ▁ Mann")


@pytest.mark.parametrize("kind", KINDS)
def test_equal_corpora_give_equal_bytes(vocabs: dict[str, Vocab], kind: Kind) -> None:
    again = train_vocab(sentences(), size=400, kind=kind, languages=["de", "en"])
    assert again.to_bytes() == vocabs[kind].to_bytes()
    assert again.hash == vocabs[kind].hash == hashlib.sha256(again.to_bytes()).hexdigest()
    other = train_vocab(sentences(200), size=400, kind=kind, languages=["de", "en"])
    assert other.hash != again.hash


def test_another_process_learns_the_same_pieces(vocab: Vocab) -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_vocab as t;"
        "print(t.train_vocab(t.sentences(), size=400, languages=['de', 'en']).hash)"
    )
    run = [sys.executable, "-c", code]
    assert (
        subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == vocab.hash
    )


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char"])
def test_a_rare_capital_of_a_usual_letter_has_a_piece(kind: Kind) -> None:
    """In bytes the model would have to learn it from a few sentences, and writes half of it."""
    corpus = [*["zwei schöne Körbe und ein Hund im Garten"] * 2000, "Öl ☂"]
    vocab = train_vocab(corpus, size=400, kind=kind)
    assert "Ö" in "".join(vocab.pieces(vocab.encode("Öl")))
    assert "☂" not in "".join(vocab.pieces(vocab.encode("☂")))


# Phrases that come so often that each would become one piece, were it allowed to.
CHINESE = [
    "纽约是一座城市。",
    "北京是一座城市。",
    "the dog 纽约 reads",
    "我在北京。",
    "我在街上看书。",
]


def with_han(kind: Kind, **options: bool) -> Vocab:
    corpus = [*sentences(), *CHINESE * 20]
    return train_vocab(corpus, size=450, kind=kind, character_coverage=1.0, **options)


def joined(vocab: Vocab) -> list[str]:
    """Pieces with two Chinese characters side by side."""
    two = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]{2}")
    return [piece for piece in vocab.pieces(range(vocab.size)) if two.search(piece)]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_no_piece_joins_chinese_characters_unless_it_may(kind: Kind) -> None:
    apart, free = with_han(kind, split_han=True), with_han(kind, split_han=False)
    assert joined(apart) == []
    assert joined(free)
    for vocab in (apart, free):
        for text in [*CHINESE, *ODD_TEXTS]:
            assert vocab.decode(vocab.encode(text)) == text
            assert vocab.decode(vocab.sample(text, alpha=0.2, seed=1)) == text
    pieces = ["▁the", "▁dog", "▁", "城", "市"]
    assert apart.pieces(apart.encode("the dog 城市")) == pieces


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("length", [900, 1900])
def test_pieces_are_learned_from_long_chinese_lines_too(kind: Kind, length: int) -> None:
    line = ("城市北京我在看书" * length)[:length]
    vocab = train_vocab([line] * 5, size=400, kind=kind)
    assert set(line) <= {*vocab.pieces(range(vocab.size))}
    assert joined(vocab) == []


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_keeping_chinese_characters_apart_leaves_other_scripts_alone(kind: Kind) -> None:
    apart, free = (
        train_vocab(sentences(), size=400, kind=kind, split_han=split_han)
        for split_han in (True, False)
    )
    assert apart.pieces(range(apart.size)) == free.pieces(range(free.size))
    for text in [*sentences(20), *ODD_TEXTS]:
        assert apart.encode(text) == free.encode(text)


def test_characters_are_apart_anyway_and_words_are_cut_at_blanks_only() -> None:
    """Claim 16."""
    chars, words = with_han("char", split_han=True), with_han("word", split_han=True)
    assert chars.to_bytes() == with_han("char", split_han=False).to_bytes()
    assert words.to_bytes() == with_han("word", split_han=False).to_bytes()
    assert chars.pieces(chars.encode("北京"))[-2:] == ["北", "京"]
    assert words.pieces(words.encode("the 纽约")) == ["▁the", "▁纽约"]


@pytest.mark.parametrize("kind", KINDS)
def test_many_texts_are_encoded_as_one_is(vocabs: dict[str, Vocab], kind: Kind) -> None:
    vocab, texts = vocabs[kind], [*ODD_TEXTS, *sentences(20)]
    assert vocab.encode_all(iter(texts)) == [vocab.encode(text) for text in texts]
    assert vocab.encode_all([]) == []


@pytest.mark.parametrize("text", ["人々", "二〇二四", "\U00020000\U000323af", "\uf900\ufaff"])
def test_rare_ideographs_and_their_signs_are_chinese_characters_too(text: str) -> None:
    vocab = train_vocab([text, *CHINESE] * 40, size=450, character_coverage=1.0)
    assert vocab.pieces(vocab.encode(text)) == ["▁", *text]


def test_chinese_characters_are_kept_apart_unless_told_otherwise() -> None:
    assert TokenizerConfig().split_han
    assert with_han("bpe").to_bytes() == with_han("bpe", split_han=True).to_bytes()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "corpus",
    [
        ["a"],
        ["one", "two"],
        list(sentences(10)),
        ["   ", "", "word"],
        ["a\0b", "c\nd", "e\r\nf", "\ud800", "▁▁", "\ufdd0", "▅", "⁇"],
        ["<pad>", "</s> <2de> <mask>", "<unk>", "<s>", "<0x41>"],
        ["x" * 20_000],
        ["漢字" * 3000, "かな。" * 3000],
        ["▅▅▅ ⁇ ⁇"],
    ],
    ids=range(9),
)
def test_a_tiny_or_odd_corpus_gives_a_small_working_vocabulary(
    kind: Kind, corpus: list[str]
) -> None:
    vocab = train_vocab(corpus, size=2_000, kind=kind)
    assert 5 + 256 <= vocab.size <= 2_000
    for text in [*ODD_TEXTS, "the dog"]:
        assert vocab.decode(vocab.encode(text)) == text


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_is_never_larger_than_asked(kind: Kind) -> None:
    assert train_vocab(sentences(), size=310, kind=kind).size <= 310


def test_training_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    train_vocab(["a quiet\0 word", "x" * 9000], size=300)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("corpus", [[], ["", "  ", "\0\n", "▁"]])
def test_an_empty_corpus_is_refused(corpus: list[str]) -> None:
    with pytest.raises(DataError, match=r"must hold at least one sentence .* but is empty"):
        train_vocab(corpus, size=400)


@pytest.mark.parametrize(
    ("kind", "size", "slots"),
    [
        ("unigram", 270, False),  # room for bytes and control symbols only
        *((kind, size, True) for kind in KINDS for size in (30, 262)),
    ],
)
def test_a_size_without_room_for_the_characters_is_refused_with_the_smallest_that_has(
    kind: Kind, size: int, slots: bool
) -> None:
    with pytest.raises(
        ConfigError, match=rf"vocab_size must be at least (\d+) .* but is {size}"
    ) as info:
        train_vocab(sentences(), size=size, kind=kind, slots=slots)
    smallest = int(str(info.value).split("at least ")[1].split()[0])
    assert train_vocab(sentences(), size=smallest, kind=kind, slots=slots).size == smallest


@pytest.mark.parametrize("kind", KINDS)
def test_a_size_without_room_for_bytes_is_refused(kind: Kind) -> None:
    needed = 264 if kind in ("unigram", "bpe") else 262  # the letter and the blank as pieces too
    with pytest.raises(ConfigError, match=rf"at least {needed} .* but is 261"):
        train_vocab(["a"], size=261, kind=kind, languages=["de"])


@pytest.mark.parametrize("code", ["", "d e", "<de>", "de>", "-de", "дe"])
def test_a_malformed_language_code_is_refused(code: str) -> None:
    with pytest.raises(ConfigError, match=r"language code, .* but is"):
        train_vocab(["a"], size=300, languages=[code])


def test_a_language_named_twice_has_one_tag() -> None:
    assert train_vocab(["a"], size=300, languages=["de", "pt-BR", "de"]).languages == (
        "de",
        "pt-BR",
    )


@pytest.mark.parametrize("n_good", [0, 1, 500])
def test_an_error_of_the_corpus_comes_through_as_it_is(n_good: int) -> None:
    def broken() -> Iterator[str]:
        yield from sentences(n_good)
        raise DataError("corpus.en line 7: not UTF-8.")

    with pytest.raises(DataError, match=r"^corpus\.en line 7: not UTF-8\.$"):
        train_vocab(broken(), size=400)


def test_more_sentences_than_memory_allows_are_sampled_alike(monkeypatch: Any) -> None:
    monkeypatch.setattr("heed.text.vocab._MAX_SENTENCES", 150)
    vocab = train_vocab(sentences(), size=400)
    assert train_vocab(sentences(), size=400).hash == vocab.hash
    assert train_vocab(sentences(150), size=400).hash != vocab.hash


def test_a_vocabulary_survives_its_file(vocab: Vocab, tmp_path: Path) -> None:
    path = tmp_path / "spm.model"
    path.write_bytes(vocab.to_bytes())
    loaded = Vocab.load(path)
    assert loaded.to_bytes() == Vocab(vocab.to_bytes()).to_bytes() == vocab.to_bytes()
    assert (loaded.hash, loaded.size, loaded.languages) == (vocab.hash, vocab.size, ("de", "en"))
    assert loaded.encode("der Mann") == vocab.encode("der Mann")


@pytest.mark.parametrize("damage", [b"", b"text", b"\0" * 100, "half", "byte", "letter"])
def test_a_damaged_file_is_named(vocab: Vocab, tmp_path: Path, damage: bytes | str) -> None:
    data = vocab.to_bytes()
    damages = {
        "half": data[: len(data) // 2],
        "byte": data.replace(b"<0x41>", b"<0x4\xff>"),
        "letter": data.replace("▁".encode(), b"\xff\xff\xff"),
    }
    path = tmp_path / "spm.model"
    path.write_bytes(damage if isinstance(damage, bytes) else damages[damage])
    with pytest.raises(FormatError, match=r"spm\.model must .*, but"):
        Vocab.load(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"spm\.model is missing"):
        Vocab.load(tmp_path / "spm.model")


def test_a_named_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "spm.model")
    with pytest.raises(FormatError, match=r"spm\.model cannot be read: it is not a regular file"):
        Vocab.load(tmp_path / "spm.model")


def foreign(tmp_path: Path, **options: Any) -> Path:
    settings = {
        "pad_id": 0,
        "unk_id": 1,
        "bos_id": 2,
        "eos_id": 3,
        "byte_fallback": True,
        "control_symbols": ["<mask>"],
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
    }
    path = tmp_path / "foreign.model"
    with path.open("wb") as writer:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=sentences(),
            model_writer=writer,
            vocab_size=400,
            hard_vocab_limit=False,
            minloglevel=2,
            **(settings | options),
        )
    return path


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"control_symbols": []}, "must have control symbols for padding"),
        ({"pad_id": -1}, "must have control symbols for padding"),
        ({"byte_fallback": False}, "must have a piece for each of the 256 bytes"),
        ({"user_defined_symbols": ["\ufdd0"]}, r"must not have the noncharacter U\+FDD0"),
        ({"normalization_rule_name": "nmt_nfkc"}, "must reproduce every text unchanged"),
        ({"remove_extra_whitespaces": True}, "must reproduce every text unchanged"),
        ({"user_defined_symbols": ["<s"]}, None),
        ({"add_dummy_prefix": False}, None),
    ],
)
def test_a_foreign_model_is_taken_only_if_it_keeps_our_promises(
    tmp_path: Path, options: dict[str, Any], words: str | None
) -> None:
    path = foreign(tmp_path, **options)
    if words is None:
        vocab = Vocab.load(path)
        assert all(vocab.decode(vocab.encode(text)) == text for text in ODD_TEXTS)
    else:
        with pytest.raises(FormatError, match=rf"foreign\.model {words}"):
            Vocab.load(path)


def test_more_pairs_never_mean_fewer_pieces() -> None:
    """Claim 17."""
    sizes = [
        choose_vocab_size(n) for n in (0, 10, 10_000, 29_000, 200_000, 10**6, 5 * 10**6, 10**9)
    ]
    assert sizes == [2_000, 2_000, 4_000, 8_000, 8_000, 16_000, 32_000, 32_000]


def test_a_script_of_many_signs_gets_room_for_words() -> None:
    assert choose_vocab_size(10_000, n_characters=3_000) == 6_000
    assert choose_vocab_size(10_000, n_characters=80) == 4_000


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"kind": "syllable"}, r"kind must be one of unigram, bpe, char, word, but is 'syllable'"),
        ({"vocab_size": 0}, "vocab_size must be a whole number from 1 to .*, but is 0"),
        (
            {"character_coverage": 0.5},
            r"character_coverage must be a number from 0\.9 to 1, but is 0\.5",
        ),
        ({"subword_alpha": 1.5}, r"subword_alpha must be a number from 0 to 1, but is 1\.5"),
        ({"subword_alpha": float("nan")}, "subword_alpha must be a number from 0 to 1, but is nan"),
        ({"kind": "char", "subword_alpha": 0.1}, r"must be 0 for kind 'char'.* but is 0\.1"),
    ],
)
def test_an_impossible_setting_is_refused(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=rf"^tokenizer\..*{words}"):
        TokenizerConfig(**setting)


def test_the_default_settings_are_possible() -> None:
    assert TokenizerConfig().kind == "unigram"
    assert TokenizerConfig(kind="bpe", vocab_size=8_000, subword_alpha=0.1).joint
