import sys
from collections.abc import Callable
from dataclasses import replace

from heed.explain.decoding.record import REASONS
from heed.explain.decoding.recorded import record_search
from heed.explain.decoding.strategies import sample_lines
from heed.explain.decoding.tree import ASCII, ROOT, tree_lines, tree_of
from heed.translate.result import Match
from heed.translate.translator import Translator

Make = Callable[..., Translator]
TEXT = "I walk home"
TWO = {
    "": {"I": 0.6, "The": 0.4},
    "I": {"sing": 0.5, "walk": 0.5},
    "The": {"dog": 1.0},
    "I sing": {"</s>": 1.0},
}


def test_the_path_to_each_finished_node_spells_its_sentence(hash_translator: Make) -> None:
    for seed in range(5):
        record = record_search(hash_translator(seed), TEXT, beam_size=4, n_best=2).record
        tree = tree_of(record)
        assert len(tree.edges) == len(tree.nodes) - 1
        ended = [node for node in tree.nodes.values() if node.finished]
        assert sorted(node.rank or 0 for node in ended)[0] == 1
        assert len(ended) == len(record.finished)
        for node in ended:
            ids, at = [], node
            while at.parent is not None and at.candidate:
                ids.append(at.candidate.id)
                at = tree.nodes[at.parent]
            assert at.id == ROOT
            is_eos = node.finished is not None and node.finished.status == "eos"
            assert node.finished
            assert ids[::-1][: len(ids) - is_eos] == node.finished.ids


def test_the_answer_leads_from_the_root(written: Make) -> None:
    tree = tree_of(record_search(written(TWO), TEXT, beam_size=2).record)
    assert tree.nodes[ROOT].rank == 1
    chain, at = [], ROOT
    while following := [node for node in tree.children[at] if node.rank == 1]:
        chain.append(following[0].candidate.piece if following[0].candidate else "")
        at = following[0].id
    assert chain == ["▁The", "▁dog", "</s>"]


def test_a_tree_is_text(written: Make) -> None:
    record = record_search(written(TWO), TEXT, beam_size=2).record
    lines = tree_lines(record, is_colored=False, marks=ASCII)
    assert lines[:4] == [
        "<s>",
        "|- ▁I ▁sing </s>  -1.204  * score -1.204, rank 2",
        "`- ▁The ▁dog </s>  -0.916  * score -0.916, rank 1",
        "",
    ]
    assert lines[4] == "3 steps; enough hypotheses had ended: 2 for a beam of 2."
    assert "1. The dog" in lines
    assert "   −0.9163 / ((5 + 3) / 6) ** 0 = −0.9163 / 1.0000 = −0.9163" in lines
    whole = tree_lines(record, is_colored=False, with_pruned=True)
    assert any(line.endswith(f"× {REASONS['beam']}") for line in whole)
    assert not any("\x1b" in line for line in whole)
    colored = tree_lines(record, is_colored=True)
    assert "\x1b[1m" in "".join(colored)


def test_the_text_of_a_search_names_the_pair_that_guided_it(hash_translator: Make) -> None:
    """A part of a percent is cut: only an equal source is 100 % similar."""
    record = record_search(hash_translator(1), TEXT, beam_size=2).record
    match = Match(similarity=0.999, source="I\x1b walk", target="The man sings")
    line = "Guided by a remembered pair, 99 % similar: I? walk → The man sings"
    lines = tree_lines(replace(record, match=match), is_colored=False)
    assert [each for each in lines if each not in tree_lines(record, is_colored=False)] == [line]
    sampled = record_search(hash_translator(1), TEXT, sample=True).record
    assert sample_lines(replace(sampled, match=match)) == [*sample_lines(sampled), line]


def test_the_tree_of_a_long_text_is_deeper_than_the_stack(hash_translator: Make) -> None:
    length = sys.getrecursionlimit() + 100
    limits = {"max_length": length, "max_length_offset": length, "min_length": length - 1}
    record = record_search(hash_translator(1), TEXT, beam_size=2, **limits).record
    lines = tree_lines(record, is_colored=False, marks=ASCII, with_pruned=True)
    assert max(line.count("|  ") + line.count("   ") for line in lines) >= length - 2


def test_a_notebook_shows_the_tree_as_text(written: Make) -> None:
    shown = record_search(written(TWO), TEXT, beam_size=2)._repr_html_()
    assert shown.startswith("<pre>&lt;s&gt;\n├─ ▁I ▁sing &lt;/s&gt;")


def test_a_piece_cannot_steer_the_terminal(written: Make) -> None:
    record = record_search(written(TWO), TEXT, beam_size=2).record
    [first, *rest] = record.steps
    hostile = [replace(each, piece="\x1b[2J\x07") for each in first.candidates]
    record = replace(record, steps=[replace(first, candidates=hostile), *rest])
    assert not any(
        sign in line for line in tree_lines(record, is_colored=False) for sign in ("\x1b", "\x07")
    )
