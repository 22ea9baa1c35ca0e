"""heed's own API, the part that shows the inside of models: traces and their tensors."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from numpy.typing import NDArray
from starlette.responses import Response

from heed.serve.inside.traces import Kept, Traces
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET, Field
from heed.serve.shapes.own import MODEL, OPTIONS, PREFIX, STYLE, TAG, direction_of, require_at_most

BYTES = "application/octet-stream"
_TRACED = (
    Field(
        name="text",
        kind="text",
        about="The sentence to trace.",
        is_required=True,
        example="A man is riding a bike.",
    ),
    Field(
        name="translation",
        kind="text",
        about="Its translation, to see how the model reads a given one; by default its own.",
    ),
    SOURCE,
    TARGET,
    MODEL,
    OPTIONS,
)
_DTYPE = Field(
    name="dtype",
    kind="word",
    about="Type of the numbers, which are little-endian.",
    default="f32",
    choices=("f16", "f32"),
)
_ENDING = Field(
    name="ending",
    kind="word",
    about="The end of the names, such as `attention.weights`; the tensors follow one another in "
    "the order of `nodes`.",
    is_required=True,
    example="cross_attention.weights",
)


_ROW = Field(
    name="row",
    kind="integer",
    about="Which row of a matrix; by default all of it.",
    low=0,
)
_SIDE = Field(
    name="side",
    kind="word",
    about="Whose vocabulary: that of the source or of the target.",
    default="tgt",
    choices=("src", "tgt"),
)


def traces_of(asked: Asked) -> Traces:
    """The traces that the server keeps."""
    traces: Traces = asked.http.app.state.traces
    return traces


async def _trace(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    translation = values["translation"] or None
    n_chars = len(values["text"]) + len(translation or "")
    require_at_most(service.settings.limits.chars, n_chars, "characters", "text")
    kept = await traces_of(asked).make(
        values["text"],
        translation,
        direction_of(values),
        options=values["options"],
    )
    return _spelled(kept)


def _spelled(kept: Kept) -> dict[str, Any]:
    trace, heads = kept.trace, kept.translator.alignment_heads
    return {
        "id": kept.id,
        "source": kept.translator.source_lang,
        "target": kept.target_lang,
        "text": trace.source,
        "translation": trace.translation,
        "source_tokens": trace.source_tokens,
        "target_tokens": trace.target_tokens,
        "expected_tokens": trace.expected_tokens,
        "alignment_heads": None if heads is None else asdict(heads),
        "nodes": [
            {
                "name": node.name,
                "shape": node.shape,
                "axes": node.axes,
                "kind": node.kind,
                "operation": node.operation,
                "formula": node.formula,
                "inputs": node.inputs,
            }
            for node in trace.nodes
        ],
    }


async def _tensor(service: Service, asked: Asked) -> Response:
    found = traces_of(asked).get(asked.http.path_params["id"]).trace
    name = asked.http.path_params["name"]
    if name not in found:
        raise Refusal(404, f"The trace has no tensor {name}.", code="no_such_tensor")
    return _sent([found[name]], asked)


async def _tensors(service: Service, asked: Asked) -> Response:
    found = traces_of(asked).get(asked.http.path_params["id"]).trace
    return _sent([*found.named(asked.values["ending"]).values()], asked)


async def _weight(service: Service, asked: Asked) -> Response:
    network = traces_of(asked).get(asked.http.path_params["id"]).translator.traced.network
    name = asked.http.path_params["name"]
    found = dict(network.named_parameters(remove_duplicate=False)) | dict(network.named_buffers())
    if name not in found:
        raise Refusal(404, f"The model has no weight {name}.", code="no_such_weight")
    weight = found[name].detach().float().numpy()
    row = asked.values["row"]
    if row is not None:
        if row >= len(weight):
            raise Refusal(400, f"row must be less than {len(weight)}.", code="bad_request")
        weight = weight[row]
    return _sent([weight], asked)


async def _pieces(service: Service, asked: Asked) -> list[str]:
    translator = traces_of(asked).get(asked.http.path_params["id"]).translator
    vocab = translator.src_vocab if asked.values["side"] == "src" else translator.tgt_vocab
    return vocab.pieces(range(vocab.size))


def _sent(tensors: list[Any], asked: Asked) -> Response:
    return numbers(tensors, "<f2" if asked.values["dtype"] == "f16" else "<f4")


def numbers(tensors: Iterable[NDArray[Any]], dtype: str = "<f4") -> Response:
    """The numbers of arrays, one behind the other."""
    content = b"".join(tensor.astype(dtype).tobytes() for tensor in tensors)
    return Response(content, media_type=BYTES)


_NODE = schemas.record(
    name=schemas.TEXT,
    shape=schemas.listed(schemas.INTEGER),
    axes=schemas.listed(schemas.TEXT),
    kind=schemas.TEXT,
    operation=schemas.TEXT,
    formula=schemas.TEXT,
    inputs=schemas.listed(schemas.TEXT),
)
_HEADS = schemas.record(
    layer=schemas.INTEGER,
    heads=schemas.listed(schemas.INTEGER),
    is_shifted=schemas.FLAG,
    error_rate=schemas.NUMBER_OR_NULL,
    measure=schemas.TEXT,
    documents_layer=schemas.INTEGER,
) | {"type": ["object", "null"]}
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/trace",
        handler=_trace,
        style=STYLE,
        tag=TAG,
        summary="Trace a sentence: every named tensor of its translation, with shape and formula.",
        fields=_TRACED,
        answer=schemas.record(
            id=schemas.TEXT,
            source=schemas.TEXT,
            target=schemas.TEXT,
            text=schemas.TEXT,
            translation=schemas.TEXT,
            source_tokens=schemas.listed(schemas.TEXT),
            target_tokens=schemas.listed(schemas.TEXT),
            expected_tokens=schemas.listed(schemas.TEXT),
            alignment_heads=_HEADS,
            nodes=schemas.listed(_NODE),
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}",
        handler=_tensors,
        style=STYLE,
        tag=TAG,
        summary="Read several tensors of a trace, one behind the other.",
        fields=(_ENDING, _DTYPE),
        media_type=BYTES,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/pieces",
        handler=_pieces,
        style=STYLE,
        tag=TAG,
        summary="Read the vocabulary of the traced model: all pieces in the order of their ids.",
        fields=(_SIDE,),
        answer=schemas.listed(schemas.TEXT),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/weights/{{name}}",
        handler=_weight,
        style=STYLE,
        tag=TAG,
        summary="Read a weight of the traced model, which a node names among its inputs.",
        fields=(_ROW, _DTYPE),
        media_type=BYTES,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/{{name}}",
        handler=_tensor,
        style=STYLE,
        tag=TAG,
        summary="Read one tensor of a trace.",
        fields=(_DTYPE,),
        media_type=BYTES,
    ),
)
