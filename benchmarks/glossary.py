"""How many terms of a glossary a model uses, by which road, at what cost in BLEU and time.

Terms are words of the test sources with the words of the references that a statistical aligner
links with them, both ways, if training has them rarely: at most two a line. Some links are wrong,
so some terms do not fit. The roads: no glossary, and what `heed translate --glossary` does.

    python benchmarks/glossary.py MODEL --test test.en test.de --train train.en train.de --lines 500
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence

import sacrebleu

from heed.data.lines import read_lines
from heed.explain.attention.statistical import reference
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.honored import find_targets
from heed.translate.lines import Line
from heed.translate.parts import Chunk
from heed.translate.translator import Translator, load
from heed.translate.words import word_spans

MOST_FREQUENT = 100
"""How often training may have the target word of a term."""
SHORTEST = 4
N_TRAIN = 12_000
"""Pairs of the training corpus that help to align the test set."""

Pairs = tuple[list[str], list[str]]


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return [text[start:end] for start, end in word_spans(text)]


def find_terms(test: Pairs, train: Pairs) -> list[Glossary | None]:
    """A glossary of at most two rare terms for each line, if it has any."""
    sources, targets = (
        [words_of(text) for text in [*mine, *theirs[:N_TRAIN]]]
        for mine, theirs in zip(test, train, strict=True)
    )
    counts = Counter(word.casefold() for text in train[1] for word in words_of(text))
    found: list[Glossary | None] = []
    gold = reference(sources, targets)[: len(test[0])]
    for src, tgt, links in zip(sources, targets, gold, strict=False):
        once = Counter(i for i, _ in links.sure)
        terms = sorted(
            (counts[tgt[j].casefold()], src[i], tgt[j])
            for i, j in links.sure
            if once[i] == 1 and _is_term(src[i]) and _is_term(tgt[j])
        )
        rare = {one: other for n, one, other in terms if n <= MOST_FREQUENT}
        chosen = dict(list(rare.items())[:2])
        found.append(Glossary.of(chosen) if chosen else None)
    return found


def _is_term(word: str) -> bool:
    return word.isalpha() and len(word) >= SHORTEST


def translate(
    translator: Translator,
    texts: Sequence[str],
    glossaries: Sequence[Glossary | None],
    *,
    applies: bool,
) -> tuple[list[str], float]:
    """The translations by a road, and the seconds that they took."""
    start = time.perf_counter()
    chunks: list[Chunk] = []
    for number, (text, glossary) in enumerate(zip(texts, glossaries, strict=True)):
        line = Line(text, glossary=glossary if applies else None)
        chunks += translator.reader.parts(line, number, [])
    found = translator.searcher.search(chunks, translator.options)
    return [one.text for one in found], time.perf_counter() - start


def main() -> None:
    """Print a row for each road."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("model")
    parser.add_argument("--test", nargs=2, required=True)
    parser.add_argument("--train", nargs=2, required=True)
    parser.add_argument("--lines", type=int, default=500)
    given = parser.parse_args()
    src, ref = (list(read_lines(path))[: given.lines] for path in given.test)
    train_src, train_ref = (list(read_lines(path)) for path in given.train)
    glossaries = find_terms((src, ref), (train_src, train_ref))
    occurrences = [
        glossary.occurrences(text) if glossary else []
        for glossary, text in zip(glossaries, src, strict=True)
    ]
    n_terms = sum(map(len, occurrences))
    n_lines = sum(map(bool, occurrences))
    sys.stdout.write(f"{n_terms} terms in {n_lines} of {len(src)} lines\n")
    translator = load(given.model)
    roads = {"no glossary": False, "glossary": True}
    translate(translator, src, glossaries, applies=False)  # reads the weights
    for name, applies in roads.items():
        texts, seconds = translate(translator, src, glossaries, applies=applies)
        n_used = sum(
            place is not None
            for text, wanted in zip(texts, occurrences, strict=True)
            for place in find_targets(text, wanted)
        )
        bleu = sacrebleu.corpus_bleu(texts, [ref]).score
        used = f"{n_used / n_terms:6.1%} used"
        sys.stdout.write(f"{name:22} {used}  BLEU {bleu:.2f}  {seconds:.2f} s\n")


if __name__ == "__main__":
    main()
