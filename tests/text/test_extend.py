"""A vocabulary that grows: old ids stay, new text is spelled in fewer pieces."""

import pytest

from heed.text.extend import control_id, extend_vocab, kind_of, new_spellings, with_controls
from heed.text.vocab import Kind, Vocab, train_vocab

OLD = ["the cat sees the dog", "a dog hears a cat", "the bird sings a song", "cats and dogs"] * 30
NEW = ["the zyxwvuq dog, jabberwocky!", "a zyxwvuq jabberwocky a größe öl", "größe"] * 12


@pytest.fixture(scope="module", params=["unigram", "bpe", "char", "word"])
def vocab(request: pytest.FixtureRequest) -> Vocab:
    return train_vocab(OLD, size=330, kind=request.param, languages=("de",))


def test_old_ids_stay_and_new_text_still_comes_back(vocab: Vocab) -> None:
    wider = extend_vocab(vocab, NEW)
    assert wider.size > vocab.size
    assert wider.pieces(range(vocab.size)) == vocab.pieces(range(vocab.size))
    for text in OLD[:4]:
        assert wider.encode(text) == vocab.encode(text)
    for text in (*NEW[:3], "ganz anders: ÄÖÜ 12", ""):
        assert wider.decode(wider.encode(text)) == text
        assert len(wider.encode(text)) <= len(vocab.encode(text))
    assert extend_vocab(vocab, NEW).hash == wider.hash


def test_the_kind_of_a_vocabulary_is_read_off_it(
    vocab: Vocab, request: pytest.FixtureRequest
) -> None:
    assert (
        kind_of(vocab) == kind_of(extend_vocab(vocab, NEW)) == request.node.callspec.params["vocab"]
    )


def test_frequent_words_that_fall_to_pieces_get_one(vocab: Vocab) -> None:
    wider = extend_vocab(vocab, NEW)
    if kind_of(vocab) == "char":
        return
    for word in ("zyxwvuq", "größe"):
        assert wider.pieces(wider.encode(word)) == [f"▁{word}"]
    assert len(wider.encode("öl")) == (1 if kind_of(vocab) == "word" else 3)  # ▁, ö, l


def test_unseen_characters_get_a_piece_but_in_a_vocabulary_of_words(vocab: Vocab) -> None:
    wider = extend_vocab(vocab, NEW)
    has_piece = "ö" in wider.pieces(range(vocab.size, wider.size))
    assert has_piece == (kind_of(vocab) != "word")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_no_new_piece_joins_chinese_characters(kind: Kind) -> None:
    old = train_vocab(["the dog sees a house"] * 20, size=300, kind=kind)
    new = extend_vocab(old, ["谢谢你的帮助。 housekeepers"] * 20)
    added = new.pieces(range(old.size, new.size))
    assert {*"谢你的帮助"} <= {*added}
    assert "▁housekeepers" in added
    assert not any("谢谢" in piece for piece in added)


def test_rare_words_and_known_text_add_nothing(vocab: Vocab) -> None:
    assert extend_vocab(vocab, ["the cat", "a dog"] * 30) is vocab
    if kind_of(vocab) in ("unigram", "bpe"):
        assert extend_vocab(vocab, ["tacsgodsebird"] * 9) is vocab


def test_new_pieces_know_how_they_were_spelt_before(vocab: Vocab) -> None:
    wider = extend_vocab(vocab, NEW, controls=["<2de>", "<2yo>"])
    spellings = new_spellings(vocab, wider)
    assert len(spellings) == wider.size - vocab.size
    assert spellings[0] == []  # <2yo>; the other tag was there
    for id, ids in enumerate(spellings[1:], start=vocab.size + 1):
        text = vocab.decode(ids)
        assert text.removeprefix(" ") == wider.decode([id])
        assert ids and not any(vocab.is_control(old) for old in ids)


def test_signs_that_mean_something_to_the_model_get_no_piece(vocab: Vocab) -> None:
    odd = ["a\u2581b \ufdd0x\ufdd1 \u2585\u2581 <s> <2de>\u2581 a\u200db \u2028 ö\ufdd0ö"] * 20
    wider = extend_vocab(vocab, odd)
    added = wider.pieces(range(vocab.size, wider.size))
    assert not any(set(piece[1:]) & set("\ufdd0\ufdd1\u2585\u2581") for piece in added)
    assert wider.decode(wider.encode(odd[0])) == odd[0]


def test_controls_are_found_by_name_and_added_once(vocab: Vocab) -> None:
    wider = with_controls(vocab, ["<2de>", "<2fr>", "<bt>"])
    assert wider.languages == ("de", "fr")
    assert control_id(wider, "<bt>") == vocab.size + 1
    assert control_id(vocab, "<bt>") is None
    assert with_controls(wider, ["<bt>"]) is wider
    assert wider.decode([vocab.size + 1, *wider.encode("a cat")]) == "a cat"
    assert wider.encode("<bt>") == vocab.encode("<bt>")
