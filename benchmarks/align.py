"""How much better a model aligns by the heads that `heed choose-heads` finds.

Heads are chosen on development pairs. Alignments of other pairs are then compared with those of a
statistical aligner in both directions, which is trained on all pairs given (fast_align's model).
Written: AER with all heads of the last layer and with the chosen ones, of the attention alone and
of what `heed.documents` makes of it, where words compete for one another.

    python benchmarks/align.py MODEL --dev dev.en dev.de --test test.en test.de --more all.en all.de
"""

import argparse
import json
import sys

import numpy as np

from heed.bundle.alignment import AlignmentHeads
from heed.data.lines import read_lines
from heed.data.word_alignment import Link
from heed.explain.attention.choice import choose
from heed.explain.attention.links import Gold, error_rate, strongest
from heed.explain.attention.statistical import reference
from heed.explain.attention.words import aligned_words
from heed.text.normalize import normalize
from heed.text.piece_words import words_of
from heed.text.vocab import Vocab
from heed.translate.result import Translation
from heed.translate.translator import Translator, load
from heed.translate.words import link_words, word_spans

Pairs = tuple[list[str], list[str]]


def by_attention(translator: Translator, src: str, tgt: str) -> set[Link]:
    """For each target word the source word that it reads most."""
    found = aligned_words(translator.align(src, tgt))
    return strongest(np.array(found.weights, np.float32))


def by_documents(translator: Translator, src: str, tgt: str) -> set[Link]:
    """The same where words compete for one another."""
    found = translator.align(src, tgt)
    aligned = Translation(
        text=tgt,
        tokens=found.target_tokens,
        source_tokens=found.source_tokens,
        alignment=found.weights,
    )
    return strongest(link_words(src, aligned).weights.astype(np.float32))


def pieces_words(vocab: Vocab, text: str) -> list[str]:
    """Words as `heed align --words` parts them."""
    return [word.text for word in words_of(vocab.pieces(vocab.encode(normalize(text))))]


def document_words(vocab: Vocab, text: str) -> list[str]:
    """Words as `heed.documents` parts them."""
    return [text[start:end] for start, end in word_spans(text)]


READINGS = {"attention": (by_attention, pieces_words), "documents": (by_documents, document_words)}


def gold_of(translator: Translator, test: Pairs, more: Pairs, *, by: str) -> list[Gold]:
    """Links of the statistical aligner in the test pairs."""
    _, words = READINGS[by]
    vocabs = translator.src_vocab, translator.tgt_vocab
    sides = (
        [words(vocab, text) for text in [*tested, *others]]
        for vocab, tested, others in zip(vocabs, test, more, strict=True)
    )
    return reference(*sides)[: len(test[0])]


def main() -> None:
    """Choose, compare, print a line of JSON for each way."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="model folder")
    for name, about in (("dev", "to choose on"), ("test", "to compare"), ("more", "to train on")):
        parser.add_argument(
            f"--{name}", nargs=2, metavar="FILE", help=about, required=name != "more"
        )
    arguments = parser.parse_args()

    def read(files: list[str] | None) -> Pairs:
        sources, targets = ([*read_lines(file)] for file in files or ("/dev/null", "/dev/null"))
        return sources, targets

    dev, test, more = read(arguments.dev), read(arguments.test), read(arguments.more)
    translator = load(arguments.model)
    gold = {name: gold_of(translator, test, more, by=name) for name in READINGS}
    default, best = AlignmentHeads(), choose(translator, *dev).best
    for attention, documents in ((default, default), (best, best.for_documents())):
        line: dict[str, str | float] = {}
        for name, heads in (("attention", attention), ("documents", documents)):
            translator.alignment_heads = heads
            read_links, _ = READINGS[name]
            links = [read_links(translator, *pair) for pair in zip(*test, strict=True)]
            line[f"{name}_by"] = str(heads)
            line[name] = round(error_rate(links, gold[name]), 4)
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
