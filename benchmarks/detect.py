# ruff: noqa: T201 (a script speaks to its terminal)
"""How well the languages that a server translates are told apart: heed beside others.

    python benchmarks/detect.py
    peers/detect/bin/python benchmarks/detect.py --detector lingua

Sentences are those of the Tatoeba test sets (English, German, Chinese). Words are 1,000 English and
1,000 German ones of three letters and more, drawn from the same sentences, which the training
sentences of the other language do not have. Yoruba stands for a language that is not served: a good
detector is not certain that it is another. lingua (its own environment) and py3langid are
restricted to the served languages, as their users do it.
"""

import argparse
import gzip
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent.parent / "shared" / "data"
SERVED = {
    "2": ("en", "de"),
    "9": ("en", "de", "zh", "fr", "es", "it", "nl", "pt", "ru"),
}
CERTAIN = 0.8
"""Answers at or above this confidence count as certain."""

WORD = re.compile(r"[^\W\d_]{3,}")

Detect = Callable[[str], tuple[str, float]]
"""The most probable language of a text, and the confidence."""


def heed_detector(served: Sequence[str]) -> Detect:
    """`heed.serve.detect`."""
    from heed.serve.detect import Detector

    detector = Detector(served)

    def detect(text: str) -> tuple[str, float]:
        best = detector.detect(text).best
        return best.code, best.probability

    return detect


def py3langid_detector(served: Sequence[str]) -> Detect:
    """py3langid, restricted and normalized."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(served)
    return lambda text: identifier.classify(text)


def lingua_detector(served: Sequence[str]) -> Detect:
    """lingua, built of the served languages only."""
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.upper()) for code in served]
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def detect(text: str) -> tuple[str, float]:
        best = detector.compute_language_confidence_values(text)[0]
        return best.language.iso_code_639_1.name.lower(), best.value

    return detect


DETECTORS = {"heed": heed_detector, "py3langid": py3langid_detector, "lingua": lingua_detector}


def lines(name: str) -> list[str]:
    """The lines of a file of the corpora."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def words_of(sentences: Sequence[str]) -> set[str]:
    """Words in small letters."""
    return {word.lower() for sentence in sentences for word in WORD.findall(sentence)}


def texts() -> dict[str, list[tuple[str, str]]]:
    """Kind of text → the language and text of each."""
    en, de = lines("tatoeba-ende/test.en.gz"), lines("tatoeba-ende/test.de.gz")
    chance = random.Random(1)
    own_en = sorted(words_of(en) - words_of(lines("tatoeba-ende/train.de.gz")))
    own_de = sorted(words_of(de) - words_of(lines("tatoeba-ende/train.en.gz")))
    return {
        "sentences": [
            *(("en", line) for line in en),
            *(("de", line) for line in de),
            *(("zh", line) for line in lines("tatoeba-zhen/test.zh.gz")),
        ],
        "words": [
            *(("en", word) for word in chance.sample(own_en, 1000)),
            *(("de", word) for word in chance.sample(own_de, 1000)),
        ],
        "another language": [("yo", line) for line in lines("menyo20k-enyo/test.yo.gz")[:1000]],
    }


def measure(name: str) -> None:
    """Print a row for each number of served languages and each kind of text."""
    for count, served in SERVED.items():
        start = time.perf_counter()
        detect = DETECTORS[name](served)
        detect("a")
        ready_s = time.perf_counter() - start
        for kind, items in texts().items():
            known = [item for item in items if item[0] in served or kind == "another language"]
            start = time.perf_counter()
            found = [(code, *detect(text)) for code, text in known]
            us = (time.perf_counter() - start) / len(known) * 1e6
            right = sum(code == best for code, best, _ in found) / len(found)
            certain = [(code, best) for code, best, value in found if value >= CERTAIN]
            wrong = sum(code != best for code, best in certain)
            print(
                f"| {name} | {count} | {kind} | {100 * right:.1f} | "
                f"{100 * len(certain) / len(found):.1f} | {100 * wrong / len(found):.1f} | "
                f"{us:.0f} | {ready_s:.2f} |"
            )


def main() -> None:
    """Read the command line and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--detector", choices=DETECTORS, help="default: heed and py3langid")
    chosen = parser.parse_args().detector
    print(
        "| detector | served | texts | right % | certain % | certain and wrong % | µs | ready s |"
    )
    print("|---|--:|---|--:|--:|--:|--:|--:|")
    for name in [chosen] if chosen else ["heed", "py3langid"]:
        measure(name)


if __name__ == "__main__":
    main()
