# ruff: noqa: T201 (a script speaks to its terminal)
"""Word vectors of heed and of gensim, in turn: speed, memory, and how many neighbors they share.

    python benchmarks/vectors.py --text train.en --kind skipgram --repeat 5

The first call installs gensim from PyPI into a virtualenv of its own (`--peers`, kept). Both learn
from the same words with the same settings (gensim's defaults), on one thread. Words a second are
those of the text, times epochs, by CPU time of the training alone; gensim reads its `corpus_file`,
its fastest way. Overlap: of the ten nearest neighbors of each of the most frequent words, the share
that two runs have in common; gensim with another seed is the most that can be expected.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PEER = "gensim==4.4.0"
SETTINGS: dict[str, Any] = {"window": 5, "negative": 5, "min_count": 5, "sample": 1e-3, "epochs": 5}
KINDS = ("skipgram", "cbow")
NEIGHBORS = 10


def install_peer(folder: Path) -> Path:
    """gensim's own Python, installed at the first call."""
    python = folder / "gensim" / "bin" / "python"
    if not list(folder.glob("gensim/lib/*/site-packages/gensim")):
        subprocess.run([sys.executable, "-m", "venv", str(folder / "gensim")], check=True)
        command = [str(python), "-m", "pip", "install", "-q", PEER]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def learn_heed(text: str, out: str, kind: Any, seed: int) -> dict[str, float]:
    """Learn with heed; CPU seconds of the training, and words of the text."""
    from heed.vectors.config import VectorsConfig
    from heed.vectors.corpus import read_corpus, split_words
    from heed.vectors.formats import write_vectors
    from heed.vectors.table import WordVectors
    from heed.vectors.word2vec import learn_word2vec

    config = VectorsConfig(kind=kind, size=100, seed=seed, **SETTINGS)
    with open(text, encoding="utf-8") as lines:
        corpus = read_corpus(split_words(lines), config.min_count)
    started = time.process_time()
    vectors = learn_word2vec(corpus, config)
    cpu_s = time.process_time() - started
    write_vectors(out, WordVectors(corpus.words, vectors))
    return {"cpu_s": cpu_s, "words": corpus.n_read}


def learn_gensim(text: str, out: str, kind: str, seed: int) -> dict[str, float]:
    """The same with gensim."""
    from gensim.models import Word2Vec

    model = Word2Vec(vector_size=100, sg=int(kind == "skipgram"), workers=1, seed=seed, **SETTINGS)
    model.build_vocab(corpus_file=text)
    started = time.process_time()
    model.train(corpus_file=text, total_words=model.corpus_total_words, epochs=model.epochs)
    cpu_s = time.process_time() - started
    model.wv.save_word2vec_format(out)
    return {"cpu_s": cpu_s, "words": model.corpus_total_words}


LEARN = {"heed": learn_heed, "gensim": learn_gensim}


def measure(
    python: Path, name: str, text: Path, out: Path, kind: str, seed: int
) -> dict[str, float]:
    """What a process of its own says of one training."""
    arguments = ["--child", name, "--text", str(text), "--out", str(out), "--kind", kind]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [str(python), __file__, *arguments, "--seed", str(seed)],
        env={**os.environ, **threads},
        capture_output=True,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def neighbors(path: Path, words: list[str]) -> list[set[str]]:
    """The nearest neighbors of each word."""
    from heed.vectors.formats import read_vectors
    from heed.vectors.table import nearest

    vectors = read_vectors(path)
    return [{one.word for one in nearest(vectors, word, NEIGHBORS)} for word in words]


def frequent_words(text: Path, count: int) -> list[str]:
    """The most frequent words of a text."""
    from heed.vectors.corpus import read_corpus, split_words

    with open(text, encoding="utf-8") as lines:
        return list(read_corpus(split_words(lines), SETTINGS["min_count"]).words[:count])


def compare(args: argparse.Namespace, python: Path, folder: Path) -> dict[str, Any]:
    """All runs of both, in turn, and the overlaps of their neighbors."""
    from heed.data.lines import read_lines
    from heed.vectors.corpus import split_words

    text = folder / "text"
    with open(text, "w", encoding="utf-8") as file:
        lines = split_words(read_lines(args.text), lowercase=True, split_punctuation=True)
        file.writelines(f"{' '.join(line)}\n" for line in lines)
    pythons = {"heed": Path(sys.executable), "gensim": python}
    runs: dict[str, list[dict[str, float]]] = {"heed": [], "gensim": []}
    for seed, name in itertools.product(range(1, args.repeat + 1), runs):
        out = folder / f"{name}-{seed}.vec"
        runs[name].append(measure(pythons[name], name, text, out, args.kind, seed))
    words = frequent_words(text, args.words)
    near = {
        f"{name} {seed}": neighbors(folder / f"{name}-{seed}.vec", words)
        for name, seed in itertools.product(runs, (1, 2))
    }
    overlap = {
        f"{one} and {other}": statistics.mean(
            len(a & b) / NEIGHBORS for a, b in zip(near[one], near[other], strict=True)
        )
        for one, other in itertools.combinations(near, 2)
    }
    speeds = {
        name: [SETTINGS["epochs"] * run["words"] / run["cpu_s"] for run in each]
        for name, each in runs.items()
    }
    return {
        "kind": args.kind,
        "words": runs["heed"][0]["words"],
        "words_per_s": {name: statistics.median(each) for name, each in speeds.items()},
        "ratio": statistics.median(
            one / other for one, other in zip(speeds["heed"], speeds["gensim"], strict=True)
        ),
        "peak_mb": {
            name: statistics.median(run["peak_mb"] for run in each) for name, each in runs.items()
        },
        "overlap": overlap,
    }


def main() -> None:
    """Compare both, or learn once as a child."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", required=True, help="a text, compressed or not")
    parser.add_argument("--kind", choices=KINDS, default="skipgram")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each, at least 2")
    parser.add_argument("--words", type=int, default=1000, help="frequent words to compare")
    parser.add_argument("--peers", type=Path, default=Path("peers"), help="kept between calls")
    parser.add_argument("--child", choices=LEARN, help=argparse.SUPPRESS)
    parser.add_argument("--out", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        found = LEARN[args.child](args.text, args.out, args.kind, args.seed)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps({**found, "peak_mb": peak_mb}))
        return
    if args.repeat < 2:
        parser.error("--repeat must be at least 2: two seeds show what can be expected")
    python = install_peer(args.peers)
    with tempfile.TemporaryDirectory(prefix="heed-vectors-") as folder:
        print(json.dumps(compare(args, python, Path(folder)), indent=2))


if __name__ == "__main__":
    main()
