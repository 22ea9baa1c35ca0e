"""heed's own API, positions and embeddings: tables, maps, neighbors."""

import asyncio
import base64
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from heed.errors import DataError
from heed.serve.inside.tables import Tables
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.answers import rounded
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.own import MODEL, PREFIX, STYLE, TAG
from heed.serve.shapes.traces import traces_of

if TYPE_CHECKING:
    from heed.explain.positions import PositionTable
    from heed.vectors.table import WordVectors

MAX_POSITIONS = 1024
_SIDE = Field(
    name="side",
    kind="word",
    about="Whose table, where both sides have one.",
    default="source",
    choices=("source", "target"),
)
_COUNT = Field(
    name="k", kind="integer", about="How many pieces.", default=10, low=1, high=100, example=3
)


def _word(name: str, about: str, example: str) -> Field:
    return Field(name=name, kind="word", about=about, is_required=True, example=example)


def _tables(asked: Asked) -> Tables:
    """The tables of the served models, if inspection is allowed."""
    traces_of(asked).require_allowed()
    tables: Tables = asked.http.app.state.tables
    return tables


async def _positions(service: Service, asked: Asked) -> dict[str, Any]:
    values, tables = asked.values, _tables(asked)
    table = await tables.positions(values["model"], values["length"], values["side"])
    model = tables.name_of(values["model"])
    return {"model": model, **await asyncio.to_thread(_spelled_positions, table)}


def _spelled_positions(table: "PositionTable") -> dict[str, Any]:
    from heed.explain.positions import similarity

    return {
        "kind": table.kind,
        "formula": table.formula,
        "shape": list(table.values.shape),
        "first": table.first,
        "trained_len": table.trained_len,
        "is_normalized": table.is_normalized,
        "waves": [
            {"pair": wave.pair, "function": wave.function, "wavelength": wave.wavelength}
            for wave in table.waves
        ],
        "values": _packed(table.values),
        "similarity": _packed(similarity(table)),
    }


async def _embeddings(service: Service, asked: Asked) -> dict[str, Any]:
    tables = _tables(asked)
    found = (await tables.pieces(asked.values["model"])).map
    sides = dict.fromkeys(found.groups)
    return {
        "model": tables.name_of(asked.values["model"]),
        "pieces": list(found.labels),
        "sides": [{"side": side, "count": list(found.groups).count(side)} for side in sides],
        "points": _packed(found.points),
        "shares": [rounded(float(share)) for share in found.projection.shares],
        "d_model": len(found.projection.mean),
    }


async def _neighbors(service: Service, asked: Asked) -> dict[str, Any]:
    from heed.vectors.table import nearest

    vectors = await _vectors(asked)
    piece = _known(vectors, asked.values["piece"], "piece")
    found = nearest(vectors, piece, asked.values["k"])
    return {
        "piece": piece,
        "neighbors": [{"piece": one.word, "cosine": rounded(one.cosine)} for one in found],
    }


async def _analogy(service: Service, asked: Asked) -> dict[str, Any]:
    from heed.explain.embeddings import ranked_analogy

    vectors = await _vectors(asked)
    query = [_known(vectors, asked.values[name], name) for name in ("word", "minus", "plus")]
    word, minus, plus = query
    found = ranked_analogy(vectors, word, minus, plus, asked.values["k"])
    return {
        "query": query,
        "ranking": [
            {"piece": one.word, "cosine": rounded(one.cosine), "is_query": one.is_query}
            for one in found
        ],
    }


async def _states(service: Service, asked: Asked) -> dict[str, Any]:
    from heed.explain.embeddings import trajectories

    trace = traces_of(asked).get(asked.http.path_params["id"]).sentence
    side: Literal["src", "tgt"] = "tgt" if asked.values["side"] == "target" else "src"
    tokens = trace.target_tokens if side == "tgt" else trace.source_tokens
    try:
        found = await asyncio.to_thread(trajectories, trace, tokens, side=side)
    except DataError as error:
        raise Refusal(400, str(error), code="no_states", field="side") from None
    return {
        "names": list(found.names),
        "tokens": list(found.tokens),
        "points": found.points.astype(float).round(6).tolist(),
        "shares": [rounded(float(share)) for share in found.projection.shares],
    }


async def _vectors(asked: Asked) -> "WordVectors":
    pieces = await _tables(asked).pieces(asked.values["model"])
    return pieces.of_side(asked.values["side"]).vectors


def _known(vectors: "WordVectors", word: str, field: str) -> str:
    """The piece for a word that a user typed.

    Raises:
        Refusal: there is no such piece.
    """
    from heed.vectors.pieces import as_piece

    piece = as_piece(vectors, word.strip())
    try:
        vectors.direction(piece)
    except DataError as error:
        raise Refusal(400, str(error), code="no_such_piece", field=field) from None
    return piece


def _packed(values: NDArray[np.float32]) -> str:
    """Numbers as float32, little-endian, in base64."""
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


_RANKED = schemas.record(piece=schemas.TEXT, cosine=schemas.NUMBER)
_FLOATS = {**schemas.TEXT, "description": "Numbers of 32 bits, little-endian, in base64."}
ENDPOINTS = (
    Endpoint(
        method="GET",
        path=f"{PREFIX}/positions",
        handler=_positions,
        style=STYLE,
        tag=TAG,
        summary="Show the table of positions of a model, and how alike its rows are.",
        fields=(
            MODEL,
            _SIDE,
            Field(
                name="length",
                kind="integer",
                about="Rows of a computed table; by default twice the longest training sentence.",
                low=1,
                high=MAX_POSITIONS,
                example=100,
            ),
        ),
        answer=schemas.record(
            model=schemas.TEXT,
            kind=schemas.TEXT,
            formula=schemas.TEXT,
            shape=schemas.listed(schemas.INTEGER),
            first=schemas.INTEGER,
            trained_len=schemas.INTEGER_OR_NULL,
            is_normalized=schemas.FLAG,
            waves=schemas.listed(
                schemas.record(
                    pair=schemas.INTEGER, function=schemas.TEXT, wavelength=schemas.NUMBER
                )
            ),
            values=_FLOATS,
            similarity=_FLOATS,
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/embeddings",
        handler=_embeddings,
        style=STYLE,
        tag=TAG,
        summary="Show every piece of a model in the plane of its first two principal components.",
        fields=(MODEL,),
        answer=schemas.record(
            model=schemas.TEXT,
            pieces=schemas.listed(schemas.TEXT),
            sides=schemas.listed(schemas.record(side=schemas.TEXT, count=schemas.INTEGER)),
            points=_FLOATS,
            shares=schemas.listed(schemas.NUMBER),
            d_model=schemas.INTEGER,
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/embeddings/neighbors",
        handler=_neighbors,
        style=STYLE,
        tag=TAG,
        summary="Name the pieces whose vectors have the nearest directions, with their cosines.",
        fields=(_word("piece", "A piece or a word.", "a"), _SIDE, _COUNT, MODEL),
        answer=schemas.record(piece=schemas.TEXT, neighbors=schemas.listed(_RANKED)),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/embeddings/analogy",
        handler=_analogy,
        style=STYLE,
        tag=TAG,
        summary="Rank the pieces nearest to word − minus + plus; those of the query are marked.",
        fields=(
            _word("word", "The word to start at.", "a"),
            _word("minus", "The word to take away.", "i"),
            _word("plus", "The word to add.", "e"),
            _SIDE,
            _COUNT,
            MODEL,
        ),
        answer=schemas.record(
            query=schemas.listed(schemas.TEXT),
            ranking=schemas.listed(
                schemas.record(piece=schemas.TEXT, cosine=schemas.NUMBER, is_query=schemas.FLAG)
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/embeddings/states/{{id}}",
        handler=_states,
        style=STYLE,
        tag=TAG,
        summary="Show the states of a traced sentence in the plane, layer by layer.",
        fields=(_SIDE,),
        answer=schemas.record(
            names=schemas.listed(schemas.TEXT),
            tokens=schemas.listed(schemas.TEXT),
            points=schemas.listed(schemas.listed(schemas.listed(schemas.NUMBER))),
            shares=schemas.listed(schemas.NUMBER),
        ),
    ),
)
