# ruff: noqa: T201 (a script speaks to its terminal)
"""How many words of a translation the training text does not have.

    heed translate -m RUN -i test.en -o out.de
    python benchmarks/new_words.py --train train.de.gz --found out.de --src test.en --ref test.de

A model of subwords can write any string of letters, and so words that do not exist. A word that
training never showed is not wrong for that: a person writes such words too, and names are copied
from the source. Both are counted, the last ones where source and reference lack the word too.
"""

import argparse
import re
import sys
from collections.abc import Iterable, Iterator

from heed.data.lines import read_lines

WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
"""Letters, with hyphens between: `E-Gitarre` is one word."""


def words(lines: Iterable[str]) -> Iterator[str]:
    """The words of some lines; a capital at the beginning of a sentence makes no other word."""
    for line in lines:
        yield from WORD.findall(line.lower())


def new_words(found: Iterable[str], known: Iterable[str]) -> tuple[list[str], float]:
    """The words of lines that other lines do not have, as often as they occur, and their share."""
    vocabulary, all_words = set(words(known)), list(words(found))
    new = [word for word in all_words if word not in vocabulary]
    return new, len(new) / max(1, len(all_words))


def main(arguments: list[str]) -> None:
    """Print the shares of the translation and of the reference, and the words."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name in ("train", "found", "src", "ref"):
        parser.add_argument(f"--{name}", required=True, metavar="FILE")
    options = parser.parse_args(arguments)
    train, found, src, ref = (
        list(read_lines(path)) for path in (options.train, options.found, options.src, options.ref)
    )
    rows = {
        "translation": new_words(found, train),
        "translation, nor in source and reference": new_words(found, [*train, *src, *ref]),
        "reference": new_words(ref, train),
    }
    for name, (new, share) in rows.items():
        print(f"{name}: {len(new)} words are not in the training text, {share:.2%}")
        print("    " + ", ".join(dict.fromkeys(new[:20])))


if __name__ == "__main__":
    main(sys.argv[1:])
