# ruff: noqa: T201 (a script speaks to its terminal)
"""Which faults of translations heed finds, what it takes for a fault, and what looking costs.

Usage: python benchmarks/doubts.py MODEL SRC TGT [--foreign FILE ...] [--no-reference] [--early]

SRC and TGT are test sentences and their translations by people, which count as good. Faults are put
into them: a stretch of at least a quarter is cut out, or what stands between two commas; a phrase
of three words or more is written twice; a digit is changed; the whole is another text of FILE, the
source itself, or is spelled with other letters. Then the model translates SRC: loops are found once
more by other means, and confidence is compared with what came out right. Those of its translations
that are right get the same faults, as if somebody else had cut them. --early asks all
checkpoints of a run for their loops, and nothing else.
"""

import argparse
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from heed.bundle.find import step_folders
from heed.data.lines import read_lines
from heed.evaluate.counts import count_chrf, reading_here
from heed.train.run.calibrate import without_judgment
from heed.translate.doubts import faults
from heed.translate.doubts.calibrate import RIGHT
from heed.translate.doubts.fit import calibration_error
from heed.translate.doubts.judge import is_doubtful
from heed.translate.result import Translation
from heed.translate.translator import Translator, load

LOOP = 3
"""Times that a stretch follows itself in a loop."""

LONG = 16
"""Longest stretch that is looked for, in words or characters."""

N_BINS = 10

Fault = Callable[[str, np.random.Generator], str | None]

FAULTS: dict[str, Fault] = {
    "a stretch cut out": faults.cut_stretch,
    "a clause cut out": faults.cut_clause,
    "a phrase repeated": faults.repeat_phrase,
    "a digit changed": faults.change_number,
}


def most_repeats(units: Sequence[object]) -> int:
    """How often a stretch of some units follows itself, at most; by trying all."""
    most = 1
    for size in range(1, LONG + 1):
        run = 0
        for place in range(size, len(units)):
            run = run + 1 if units[place] == units[place - size] else 0
            most = max(most, run // size + 1)
    return most


def is_loop(text: str, *others: str) -> bool:
    """Whether words or letters come again and again, as in none of the other texts."""

    def counts(line: str) -> tuple[int, int]:
        # Marks do not keep equal letters apart, digits do.
        letters = [place if c.isdigit() else c for place, c in enumerate(line) if c.isalnum()]
        return most_repeats(line.split()), most_repeats(letters)

    words, letters = counts(text)
    usual = [counts(other) for other in others]
    return (words >= LOOP and all(words > other[0] for other in usual)) or (
        letters > LOOP and all(letters > other[1] for other in usual)
    )


def kinds(found: Sequence[Translation]) -> str:
    """How often each kind was named, the most frequent first."""
    counts = Counter(doubt.kind for each in found for doubt in each.doubts)
    return ", ".join(f"{kind} {count}" for kind, count in counts.most_common(6))


def row(name: str, found: Sequence[Translation]) -> None:
    """Print a line of the table."""
    share = sum(map(is_doubtful, found)) / max(1, len(found))
    print(f"| {name} | {len(found):,} | {100 * share:.1f} % | {kinds(found)} |", flush=True)


def given(translator: Translator, src: list[str], tgt: list[str], foreign: list[str]) -> None:
    """Print what is found in translations by people, and in these with faults."""
    print("| translations | lines | doubtful | kinds |\n|---|--:|--:|---|")
    row("by people", translator.judged(src, tgt))
    random = np.random.default_rng(1)
    for name, fault in FAULTS.items():
        made = [(one, fault(other, random)) for one, other in zip(src, tgt, strict=True)]
        pairs = [(one, other) for one, other in made if other is not None]
        row(name, translator.judged([one for one, _ in pairs], [other for _, other in pairs]))
    long = [one for one in src if sum(w.islower() and w.isalpha() for w in one.split()) >= 4]
    row("the source itself", translator.judged(long, long))
    odd = faults.in_no_language(tgt, random)
    whole = [place for place, one in enumerate(src) if one in set(long)]
    row("other letters", translator.judged([src[n] for n in whole], [odd[n] for n in whole]))
    for path in foreign:
        texts = [line for line in read_lines(path) if line.strip()][: len(src)]
        row(f"lines of {Path(path).name}", translator.judged(src[: len(texts)], texts))


def own(translator: Translator, src: list[str], tgt: list[str]) -> None:
    """Print what is found in what the model itself writes, and what it costs."""
    plain = without_judgment(translator)
    started = time.process_time()
    before = plain.translate(src)
    plain_s = time.process_time() - started
    bare = [
        Translation(text=one.text, **{name: getattr(one, name) for name in KEPT}) for one in before
    ]
    started = time.process_time()
    judged = translator.judge.judge(bare)
    judging_s = time.process_time() - started
    started = time.process_time()
    found = translator.translate(src)
    whole_s = time.process_time() - started
    counts = count_chrf([each.text for each in judged], [tgt], reading_here(translator.target_lang))
    scores = counts.score(counts.per_sentence)
    loops = [is_loop(*texts) for texts in zip([b.text for b in before], src, tgt, strict=True)]
    missed = [
        one.text
        for one, is_one in zip(judged, loops, strict=True)
        if is_one and not is_doubtful(one)
    ]
    print("\n| own translations | |\n|---|---|")
    print(f"| doubtful at first | {sum(map(is_doubtful, judged)):,} of {len(src):,} |")
    print(f"| kinds | {kinds(judged)} |")
    print(f"| doubtful after second searches | {sum(map(is_doubtful, found)):,} |")
    repaired = [n for n, each in enumerate(found) if "repaired" in {d.kind for d in each.doubts}]
    print(f"| repaired | {len(repaired)} |")
    if repaired:
        texts = [found[n].text for n in repaired]
        after = count_chrf(texts, [[tgt[n] for n in repaired]], reading_here(""))
        now, then = after.of(), counts.of(np.isin(np.arange(len(src)), repaired))
        print(f"| chrF2 of these, before and after | {then:.1f}, {now:.1f} |")
    print(f"| loops, by trying all | {sum(loops)}, not called doubtful: {len(missed)} |")
    for text in missed[:5]:
        print(f"|   missed | {text} |")
    right = [
        (one, other.text)
        for one, other, score in zip(src, judged, scores, strict=True)
        if score >= RIGHT
    ]
    random = np.random.default_rng(2)
    for name, fault in {"right": None, **FAULTS}.items():
        pairs = [(one, fault(text, random) if fault else text) for one, text in right]
        whole = [(one, text) for one, text in pairs if text is not None]
        if whole:
            again = translator.judged(*map(list, zip(*whole, strict=True)))
            share = 100 * np.mean([*map(is_doubtful, again)])
            print(f"| {name}, {len(whole):,} lines, doubtful | {share:.1f} %; {kinds(again)} |")
    is_fine = scores >= np.median(scores)
    alarms = [each for each, fine in zip(judged, is_fine, strict=True) if fine]
    print(
        f"| the better half, called doubtful | {100 * np.mean([*map(is_doubtful, alarms)]):.1f} % |"
    )
    of_time = 100 * judging_s / plain_s
    print(f"| looking, of the time of translating | {of_time:.1f} % |")
    print(f"| looking and second searches | {100 * (whole_s - plain_s) / plain_s:.1f} % |")
    judgment = translator.judge.judgment
    if judgment is not None and judged[0].confidence is not None:
        confidences = np.array([each.confidence or 0.0 for each in judged])
        is_right = scores >= judgment.right
        error = calibration_error(confidences, is_right, N_BINS)
        print(f"| right (chrF2 ≥ {judgment.right:.0f}) | {is_right.mean():.1%} |")
        print(f"| calibration error, {N_BINS} bins of equal mass | {error:.3f} |")


KEPT = ("score", "log_prob", "tokens", "token_scores", "source_tokens", "status")


def early(run: Path, src: list[str], tgt: list[str], threads: int) -> None:
    """Print how many loops the checkpoints of a run write, and how many are called doubtful."""
    print("| step | loops, by trying all | not called doubtful | doubtful | example |")
    print("|--:|--:|--:|--:|---|")
    for step, folder in reversed(step_folders(run)):
        if not step:
            continue  # what an untrained model writes is no language
        found = load(folder, threads=threads).translate(src)
        loops = [
            each
            for each, one, other in zip(found, src, tgt, strict=True)
            if is_loop(each.text, one, other)
        ]
        missed = [each.text for each in loops if not is_doubtful(each)]
        n_doubtful = sum(map(is_doubtful, found))
        example = missed[0] if missed else ""
        print(f"| {step} | {len(loops)} | {len(missed)} | {n_doubtful} | {example} |", flush=True)


def main() -> None:
    """Measure, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("--foreign", nargs="*", default=[])
    parser.add_argument("--early", action="store_true")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    wanted = parser.parse_args()
    src = [*read_lines(wanted.src)][: wanted.lines]
    tgt = [*read_lines(wanted.tgt)][: wanted.lines]
    if wanted.early:
        early(wanted.model, src, tgt, wanted.threads)
        return
    translator = load(wanted.model, threads=wanted.threads)
    given(translator, src, tgt, wanted.foreign)
    own(translator, src, tgt)


if __name__ == "__main__":
    main()
