"""Maps of vectors: principal components of embeddings and of a sentence's states by layer.

Neighbors and analogies are in `heed.vectors.table`; `heed.vectors.pieces` reads a model's tables.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.errors import DataError
from heed.vectors.pieces import PieceTable
from heed.vectors.table import WordVectors, analogy

Floats = NDArray[np.float32]
Side = Literal["src", "tgt"]


class Projection(NamedTuple):
    """Principal components: the orthogonal directions of the largest variance.

    Attributes:
        mean: mean of the vectors, `(size,)`.
        components: directions of length 1, the strongest first, `(n_components, size)`.
        shares: the share of the variance that each explains, `(n_components,)`.
    """

    mean: Floats
    components: Floats
    shares: Floats

    def __call__(self, vectors: Floats) -> Floats:
        """Coordinates of vectors `(…, size)`, `(…, n_components)`."""
        coordinates = (vectors - self.mean) @ self.components.T
        return coordinates.astype(np.float32, copy=False)


@dataclass(frozen=True, kw_only=True)
class Map:
    """Vectors projected into the plane.

    Attributes:
        labels: pieces or words.
        groups: group of each: `source`, `target`, or `shared` if both sides have one table; `word`
            for a file of vectors.
        points: `(n_labels, 2)`.
        projection: the projection that computed the points.
    """

    labels: Sequence[str]
    groups: Sequence[str]
    points: Floats
    projection: Projection


@dataclass(frozen=True, kw_only=True)
class Trajectories:
    """The states of one sentence in the plane, layer by layer.

    Attributes:
        names: the tensors, in the order of computation: the embeddings, then each layer.
        tokens: the tokens of the sentence.
        points: `(n_names, n_tokens, 2)`.
        projection: the projection of all these states together.
    """

    names: Sequence[str]
    tokens: Sequence[str]
    points: Floats
    projection: Projection


class Ranked(NamedTuple):
    """A word in the ranking of an analogy.

    Attributes:
        word: the word or piece.
        cosine: of the angle between its vector and the target.
        is_query: whether it is a word of the query, and therefore cannot be the answer.
    """

    word: str
    cosine: float
    is_query: bool


def ranked_analogy(
    vectors: WordVectors, word: str, minus: str, plus: str, count: int = 10
) -> list[Ranked]:
    """`heed.vectors.table.analogy`, with the ranks of the three words of the query.

    They are excluded from the answer, as everywhere in the literature. But often one of them would
    be the first, which a table without them hides.

    Args:
        vectors: the words to choose from.
        word: the first word, such as king.
        minus: the word that is subtracted, such as man.
        plus: the word that is added, such as woman.
        count: number of words besides these three.

    Raises:
        DataError: a word has no vector.
    """
    found = [Ranked(*one, False) for one in analogy(vectors, word, minus, plus, count)]
    target = vectors.direction(word) - vectors.direction(minus) + vectors.direction(plus)
    target = target / (float(np.linalg.norm(target)) or 1.0)
    for each in dict.fromkeys([word, minus, plus]):
        found.append(Ranked(each, float(vectors.direction(each) @ target), True))
    return sorted(found, key=lambda one: -one.cosine)


def principal_components(vectors: Floats, n_components: int = 2) -> Projection:
    """The principal components of centered vectors.

    They are the right singular vectors of the centered matrix. If it has more rows than columns,
    they are computed from XᵀX, `(size, size)`, in double precision: a hundredth of the work for
    32,000 pieces. The largest entry of each is positive, so that machines agree.

    Args:
        vectors: `(n_vectors, size)`.
        n_components: number of components; fewer, if there are fewer directions.

    Raises:
        DataError: there are fewer than two vectors.

    Source: Pearson 1901, "On Lines and Planes of Closest Fit to Systems of Points in Space".
    """
    if vectors.ndim != 2 or len(vectors) < 2:
        raise DataError(f"a map must have two vectors or more, but the array is {vectors.shape}.")
    mean = vectors.mean(axis=0, dtype=np.float64)
    centered = vectors - mean
    matrix = centered if len(vectors) <= vectors.shape[1] else centered.T @ centered
    _, strengths, directions = np.linalg.svd(matrix, full_matrices=False)
    variances = strengths**2 if matrix is centered else strengths
    components = directions[:n_components]
    largest = components[np.arange(len(components)), np.abs(components).argmax(axis=1)]
    components = components * np.where(largest < 0, -1.0, 1.0)[:, None]
    total = float(variances.sum()) or 1.0
    shares = variances[:n_components] / total
    return Projection(*(part.astype(np.float32) for part in (mean, components, shares)))


def map_of_pieces(tables: Sequence[PieceTable]) -> Map:
    """The pieces of a model in one plane, from both sides if each has a table.

    Control pieces and bytes are excluded. The axes are those of all pieces together.

    Args:
        tables: from `heed.vectors.pieces.piece_tables`.
    """
    labels: list[str] = []
    groups: list[str] = []
    rows: list[Floats] = []
    for table in tables:
        vectors = table.vectors
        labels += vectors.words
        groups += [table.side] * len(vectors.words)
        rows.append(vectors.matrix)
    return _map(labels, groups, np.concatenate(rows))


def map_of_words(vectors: WordVectors, most: int = 32_000) -> Map:
    """The words of a file of vectors in the plane.

    Args:
        vectors: the words.
        most: maximum number of words; the first ones are usually the most frequent.
    """
    words = list(vectors.words[:most])
    return _map(words, ["word"] * len(words), vectors.matrix[:most])


def trajectories(
    tensors: Mapping[str, Floats], tokens: Sequence[str], *, side: Side = "src"
) -> Trajectories:
    """The path of a sentence's states from layer to layer.

    Args:
        tensors: a trace from `Translator.trace`.
        tokens: the tokens that the side reads.
        side: `src` or `tgt`; a model with one stack reads both with it, the source first.

    Raises:
        DataError: the trace has no layers of that side, or the number of tokens differs.
    """
    # A model may have no encoder layer, but then its source is embedded apart.
    is_one_stack = not {"encoder.0.in", "embed_src.sum"} & tensors.keys()
    stack = "encoder" if side == "src" and not is_one_stack else "decoder"
    first = f"{stack}.0.in"
    firsts = (first,) if is_one_stack else (f"embed_{side}.sum", f"embedded_{side}", first)
    layers = re.compile(rf"{stack}\.\d+\.(out|state)")
    names = [name for name in firsts if name in tensors][:1]
    names += [name for name in tensors if layers.fullmatch(name)]
    n = len(tokens)
    rows = slice(None) if not is_one_stack else slice(n) if side == "src" else slice(-n, None)
    states = [tensors[name][rows] for name in names]
    if len(states) < 2 or {len(each) for each in states} != {n}:
        raise DataError(
            f"the trace must have states of each layer of the {stack} for {n} tokens, but has "
            f"{', '.join(names) or 'none'}."
        )
    stacked = np.stack(states)
    projection = principal_components(stacked.reshape(-1, stacked.shape[-1]))
    points = _in_plane(projection, stacked)
    return Trajectories(names=names, tokens=list(tokens), points=points, projection=projection)


def _map(labels: Sequence[str], groups: Sequence[str], matrix: Floats) -> Map:
    projection = principal_components(matrix)
    points = _in_plane(projection, matrix)
    return Map(labels=labels, groups=groups, points=points, projection=projection)


def _in_plane(projection: Projection, vectors: Floats) -> Floats:
    """Coordinates `(…, 2)` of vectors `(…, size)`; vectors of one number lie on the first axis."""
    points = projection(vectors)
    missing = 2 - points.shape[-1]
    return np.pad(points, [(0, 0)] * (points.ndim - 1) + [(0, missing)])
