"""heed's own API, decoding: how a translation was searched or sampled."""

from typing import Any

from starlette.responses import Response

from heed.serve.inside.searches import Searched, Searches
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET, Field
from heed.serve.shapes.own import MODEL, PREFIX, STYLE, TAG, direction_of, require_at_most
from heed.serve.shapes.traces import BYTES, MATCH, numbers

MAX_DRAWS = 1000
_TEXT = Field(
    name="text",
    kind="text",
    about="The sentence to search for.",
    is_required=True,
    example="A man is riding a bike.",
)
_BEGIN = Field(name="prefix", kind="text", about="How the translation must begin.", default="")
_BEGIN_IDS = Field(
    name="prefix_ids",
    kind="integers",
    about="The same as ids of pieces, instead of `prefix`.",
)
_USE_MEMORY = Field(
    name="use_memory",
    kind="flag",
    about="Whether a remembered pair that is like the sentence may guide the search. Without it, "
    "all probabilities are those of the model alone.",
    default=True,
)
_OPTIONS = Field(
    name="options",
    kind="object",
    about="Options of decoding, such as `beam_size`, `sample` or `top_p`.",
    default={},
    example={"beam_size": 2},
)
_STEP = Field(name="step", kind="integer", about="Number of the step, from 0.", default=0, low=0)
_SEED = Field(name="seed", kind="integer", about="As in the options.", default=0, low=0)
_COUNT = Field(
    name="count", kind="integer", about="How many samples.", default=100, low=1, high=MAX_DRAWS
)

_CONSTRAINTS = Field(
    name="constraints",
    kind="flag",
    about="Whether to add the log-probabilities after all constraints.",
    default=True,
)
_FIRST = Field(name="first", kind="integer", about="Id of the first.", default=0, low=0)
_PIECES = Field(
    name="count", kind="integer", about="How many, by default all.", default=None, low=1
)


def searches_of(asked: Asked) -> Searches:
    """The searches kept by the server."""
    searches: Searches = asked.http.app.state.searches
    return searches


async def _search(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    n_chars = len(values["text"]) + len(values["prefix"])
    require_at_most(service.settings.limits.chars, n_chars, "characters", "text")
    found = await searches_of(asked).make(
        values["text"],
        direction_of(values),
        prefix=values["prefix"],
        prefix_ids=values["prefix_ids"],
        use_memory=values["use_memory"],
        options=values["options"],
    )
    return _spelled(found)


def _spelled(found: Searched) -> dict[str, Any]:
    record = found.search.record
    return {
        "id": found.id,
        "model": found.direction.model or "",
        "source": found.direction.source,
        "target": found.direction.target,
        "text": found.text,
        "translation": record.text,
        "control_ids": list(found.translator.tgt_vocab.control_ids),
        **record.to_dict(),
    }


async def _step(service: Service, asked: Asked) -> Response:
    number = asked.http.path_params["step"]
    if not (number.isascii() and number.isdigit() and len(number) < 9):
        raise Refusal(404, "The step must be a whole number.", code="no_such_step")
    found = await searches_of(asked).at(asked.http.path_params["id"], int(number))
    parts = [found.log_probs, found.scores] if asked.values["constraints"] else [found.log_probs]
    return numbers(parts)


async def _pieces(service: Service, asked: Asked) -> list[str]:
    vocab = searches_of(asked).get(asked.http.path_params["id"]).translator.tgt_vocab
    first, count = asked.values["first"], asked.values["count"]
    end = vocab.size if count is None else min(vocab.size, first + count)
    return vocab.pieces(range(first, end))


async def _draws(service: Service, asked: Asked) -> dict[str, Any]:
    from heed.explain.decoding.observe import draws_at

    searches_of(asked).get(asked.http.path_params["id"])
    values = asked.values
    require_at_most(service.settings.limits.chars, values["step"], "", "step")
    return {"numbers": draws_at(values["step"], seed=values["seed"], count=values["count"])}


ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/search",
        handler=_search,
        style=STYLE,
        tag=TAG,
        summary="Record a search: every step with its candidates and fates, and the ranking.",
        fields=(_TEXT, SOURCE, TARGET, MODEL, _OPTIONS, _BEGIN, _BEGIN_IDS, _USE_MEMORY),
        answer={
            **schemas.record(
                id=schemas.TEXT,
                translation=schemas.TEXT,
                strategy={"enum": ["greedy", "beam", "sample"]},
                vocab_size=schemas.INTEGER,
                match=MATCH,
                steps=schemas.listed({"type": "object"}),
                finished=schemas.listed({"type": "object"}),
            ),
            "description": "The fields of heed.explain.decoding.record.SearchRecord, and what was "
            "asked.",
        },
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/search/{{id}}/step/{{step}}",
        handler=_step,
        style=STYLE,
        tag=TAG,
        summary="Read the whole distribution of every live hypothesis at a step, as little-endian "
        "float32: the model's log-probabilities of each row, then those after all constraints.",
        fields=(_CONSTRAINTS,),
        media_type=BYTES,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/search/{{id}}/pieces",
        handler=_pieces,
        style=STYLE,
        tag=TAG,
        summary="List the pieces of the target vocabulary, by id.",
        fields=(_FIRST, _PIECES),
        answer=schemas.listed(schemas.TEXT),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/search/{{id}}/draws",
        handler=_draws,
        style=STYLE,
        tag=TAG,
        summary="List the random numbers that the first samples of a sentence use at a step.",
        fields=(_STEP, _SEED, _COUNT),
        answer=schemas.record(numbers=schemas.listed(schemas.NUMBER)),
    ),
)
