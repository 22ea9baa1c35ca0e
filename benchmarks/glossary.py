"""How many terms of a glossary a model uses, and what that costs in BLEU and time.

Three glossaries of the test set:

- `rare`: words of the test sources with the words of the references that a statistical aligner
  links with them, if training has them rarely; at most two a line, each line its own. An extreme
  list: most lines lack a term. Some links are wrong, so some terms do not fit.
- `frequent`: one dictionary of up to 1,000 frequent words of training with all forms that they are
  linked with twice or more, if one of these stands in nine of ten of the pairs with the word. Most
  of it stands in the output already.
- `large`: 300,000 made-up terms that occur nowhere, and the rare ones of a tenth of the lines.

BLEU "rest" is that of the text around the terms: in translation and reference each form of a term
of the line is replaced by the same sign. Seconds are CPU time of this process, the median of pairs.

    python benchmarks/glossary.py MODEL --test test.en test.de --train train.en train.de --lines 500
"""

import argparse
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence

import sacrebleu

from heed.data.lines import read_lines
from heed.explain.attention.terms import linked_terms, words_of
from heed.translate.glossary.glossary import Glossary, Occurrence
from heed.translate.glossary.honored import find_targets
from heed.translate.lines import Line
from heed.translate.parts import Chunk
from heed.translate.translator import Translator, load

MOST_FREQUENT = 100
"""How often training may have the target word of a rare term."""
MOST_IN_A_LINE = 2
N_TRAIN = 12_000
"""Pairs of the training corpus that help to align the test set."""
N_FREQUENT = 1_000
N_LARGE = 300_000

_MASK = " \u25a1 "
Pairs = tuple[list[str], list[str]]
Glossaries = Sequence[Glossary | None]


def rare(test: Pairs, train: Pairs) -> list[Glossary | None]:
    """A glossary of at most two rare terms for each line, if it has any."""
    sources, targets = (
        [*mine, *theirs[:N_TRAIN]] for mine, theirs in zip(test, train, strict=True)
    )
    counts = Counter(word.casefold() for text in train[1] for word in words_of(text))
    found: list[Glossary | None] = []
    for terms in linked_terms(sources, targets)[: len(test[0])]:
        ranked = sorted((counts[tgt.casefold()], src, tgt) for src, tgt in terms)
        few = {src: tgt for n, src, tgt in ranked if n <= MOST_FREQUENT}
        chosen = dict([*few.items()][:MOST_IN_A_LINE])
        found.append(Glossary.of(chosen) if chosen else None)
    return found


def frequent(train: Pairs) -> Glossary:
    """The most frequent words of training that have one translation, with its forms."""
    sources, targets = (texts[:N_TRAIN] for texts in train)
    forms: dict[str, Counter[str]] = {}
    for terms in linked_terms(sources, targets):
        for src, tgt in terms:
            forms.setdefault(src.casefold(), Counter())[tgt] += 1
    words = {
        src: [form for form, n in found.most_common() if n > 1] for src, found in forms.items()
    }
    clear = Glossary.of({src: "|".join(found) for src, found in words.items() if found})
    there: dict[str, list[bool]] = {}
    for text, target in zip(sources, targets, strict=True):
        occurrences = clear.occurrences(text)
        for one, place in zip(occurrences, find_targets(target, occurrences), strict=True):
            there.setdefault(one.term, []).append(place is not None)
    order = sorted(there, key=lambda src: -len(there[src]))
    fitting = [src for src in order if 10 * sum(there[src]) >= 9 * len(there[src])]
    entries = clear.entries
    return Glossary.of({src: entries[src] for src in fitting[:N_FREQUENT]})


def large(few: Glossaries) -> Glossary:
    """The terms of a tenth of the lines, and very many that occur nowhere."""
    entries = {f"zz{n:x} {n % 97}q": f"qq{n:x}" for n in range(N_LARGE)}
    for glossary in few[::10]:
        entries |= glossary.entries if glossary else {}
    return Glossary.of(entries)


def translate(
    translator: Translator, texts: Sequence[str], glossaries: Glossaries
) -> tuple[list[str], float]:
    """The translations, and the seconds of CPU time that they took."""
    start = time.process_time()
    chunks: list[Chunk] = []
    for number, (text, glossary) in enumerate(zip(texts, glossaries, strict=True)):
        chunks += translator.reader.parts(Line(text, glossary=glossary), number, [])
    found = translator.searcher.search(chunks, translator.options)
    assert len(found) == len(texts), "lines that are cut are not judged"
    return [one.text for one in found], time.process_time() - start


def bleu(texts: list[str], ref: list[str]) -> float:
    """BLEU of translations; the signs for terms are no sign that the text is tokenized."""
    score: float = sacrebleu.corpus_bleu(texts, [ref], force=True).score
    return score


def rest(text: str, wanted: Sequence[Occurrence]) -> str:
    """A text in which each form of a term is the same sign."""
    for form in sorted({form for one in wanted for form in one.targets}, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(form)}(?!\w)", _MASK, text, flags=re.IGNORECASE)
    return text


def show(
    name: str, translator: Translator, test: Pairs, glossaries: Glossaries, *, rounds: int
) -> None:
    """Print a row without and a row with the glossary."""
    src, ref = test
    occurrences = [
        [one for one in glossary.occurrences(text) if one.targets] if glossary else []
        for glossary, text in zip(glossaries, src, strict=True)
    ]
    n_terms = sum(map(len, occurrences))
    n_lines = sum(map(bool, occurrences))
    translate(translator, src, glossaries)  # compiles the glossary
    seconds: dict[str, list[float]] = {"without": [], "with": []}
    texts: dict[str, list[str]] = {}
    for _ in range(rounds):
        for road, given in (("without", [None] * len(src)), ("with", glossaries)):
            texts[road], taken = translate(translator, src, given)
            seconds[road].append(taken)
    pairs = zip(seconds["with"], seconds["without"], strict=True)
    ratio = statistics.median(one / other for one, other in pairs)
    masked = [rest(text, wanted) for text, wanted in zip(ref, occurrences, strict=True)]
    for road, found in texts.items():
        there = [find_targets(text, one) for text, one in zip(found, occurrences, strict=True)]
        n_used = sum(place is not None for places in there for place in places)
        around = [rest(text, wanted) for text, wanted in zip(found, occurrences, strict=True)]
        lacking = sum(None in places for places in there)
        sys.stdout.write(
            f"{name:9} {road:8} {n_terms} terms in {n_lines} lines, {lacking} lack some  "
            f"{n_used / max(1, n_terms):6.1%} used  "
            f"BLEU {bleu(found, ref):.2f}  "
            f"rest {bleu(around, masked):.2f}  "
            f"{statistics.median(seconds[road]):.2f} s\n"
        )
    sys.stdout.write(f"{name:9} time {ratio:.2f} times\n")


def main() -> None:
    """Print rows for each glossary."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("model")
    parser.add_argument("--test", nargs=2, required=True)
    parser.add_argument("--train", nargs=2, required=True)
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="auto")
    given = parser.parse_args()
    test_src, test_ref = (list(read_lines(path))[: given.lines] for path in given.test)
    train_src, train_ref = (list(read_lines(path)) for path in given.train)
    test, train = (test_src, test_ref), (train_src, train_ref)
    translator = load(given.model, dtype=given.dtype, threads=1)
    short = [
        n for n, text in enumerate(test_src) if len(translator.reader.parts(Line(text), 0, [])) == 1
    ]
    test = [test_src[n] for n in short], [test_ref[n] for n in short]
    translate(translator, test[0], [None] * len(test[0]))  # reads the weights
    few = rare(test, train)
    own, many = frequent(train), large(few)
    for name, glossaries in (
        ("rare", few),
        ("frequent", [own] * len(test[0])),
        ("large", [many] * len(test[0])),
    ):
        show(name, translator, test, glossaries, rounds=given.rounds)


if __name__ == "__main__":
    main()
