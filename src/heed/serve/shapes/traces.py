"""heed's own API, inspection: traces of models and their tensors."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from starlette.responses import Response

from heed.serve.inside.traces import Kept, Traces
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET, Field, as_list
from heed.serve.shapes.own import MODEL, OPTIONS, PREFIX, STYLE, TAG, direction_of, require_at_most

if TYPE_CHECKING:
    from heed.translate.trace import BatchTrace, Trace

BYTES = "application/octet-stream"
_TRACED = (
    Field(
        name="text",
        kind="texts",
        about="The sentence to trace, or a list of sentences, which are read as one batch, padded "
        "to the longest.",
        is_required=True,
        example="A man is riding a bike.",
    ),
    Field(
        name="translation",
        kind="texts",
        about="Its translation, to see how the model reads a given one; by default its own. Of a "
        "list of sentences a list, with an empty text where it is the model's own.",
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


_BATCH = Field(
    name="batch",
    kind="integer",
    about="Which sentence of a batch, from 0; by default all, in front of the other axes.",
    low=0,
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
    """The traces kept by the server."""
    traces: Traces = asked.http.app.state.traces
    return traces


async def _trace(service: Service, asked: Asked) -> dict[str, Any]:
    values, limits = asked.values, service.settings.limits
    is_batch = isinstance(values["text"], list)
    texts, translations = _sentences(values["text"], values["translation"])
    require_at_most(limits.texts, len(texts), "texts", "text")
    # Padding: each one takes as much memory as the longest.
    n_chars = sum(len(texts) * max(map(len, side)) for side in (texts, translations))
    require_at_most(limits.chars, n_chars, "characters", "text")
    kept = await traces_of(asked).make(
        texts,
        translations,
        direction_of(values),
        options=values["options"],
        is_batch=is_batch,
    )
    return _spelled(kept, is_batch=is_batch)


def _sentences(
    text: str | list[str], translation: str | list[str] | None
) -> tuple[list[str], list[str]]:
    """The sentences, with a translation for each; empty = none.

    Raises:
        Refusal: the numbers of sentences and translations differ.
    """
    texts = as_list(text)
    translations = as_list(translation) if translation else [""] * len(texts)
    if len(translations) != len(texts) or (
        translation and isinstance(translation, list) != isinstance(text, list)
    ):
        raise Refusal(
            400,
            "translation must have one entry for each text.",
            code="wrong_value",
            field="translation",
        )
    return texts, translations


def _spelled(kept: Kept, *, is_batch: bool) -> dict[str, Any]:
    heads = kept.translator.alignment_heads
    sentences = [_spelled_sentence(trace) for trace in kept.sentences]
    return {
        "id": kept.id,
        "source": kept.source_lang,
        "target": kept.target_lang,
        **({"sentences": sentences} if is_batch else sentences[0]),
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
            for node in kept.trace.nodes
        ],
    }


def _spelled_sentence(trace: "Trace") -> dict[str, Any]:
    return {
        "text": trace.source,
        "translation": trace.translation,
        "source_tokens": trace.source_tokens,
        "source_ids": trace.source_ids,
        "expected_ids": trace.expected_ids,
        "target_ids": trace.target_ids,
        "target_tokens": trace.target_tokens,
        "expected_tokens": trace.expected_tokens,
        "source_padding": trace.n_src_padding,
        "target_padding": trace.n_tgt_padding,
        "match": None if trace.match is None else asdict(trace.match),
    }


async def _tensor(service: Service, asked: Asked) -> Response:
    found = _part(asked)
    name = asked.http.path_params["name"]
    if name not in found:
        raise Refusal(404, f"The trace has no tensor {name}.", code="no_such_tensor")
    return _sent([found[name]], asked)


async def _tensors(service: Service, asked: Asked) -> Response:
    found = _part(asked)
    return _sent([*found.named(asked.values["ending"]).values()], asked)


def _part(asked: Asked) -> "Trace | BatchTrace":
    """The requested trace, or one sentence of it."""
    return traces_of(asked).get(asked.http.path_params["id"]).part(asked.values["batch"])


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
    """The numbers of arrays, concatenated."""
    content = b"".join(tensor.astype(dtype).tobytes() for tensor in tensors)
    return Response(content, media_type=BYTES)


MATCH = schemas.record(
    similarity=schemas.NUMBER,
    source=schemas.TEXT,
    target=schemas.TEXT,
) | {"type": ["object", "null"]}
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
_SENTENCE = schemas.record(
    text=schemas.TEXT,
    translation=schemas.TEXT,
    source_tokens=schemas.listed(schemas.TEXT),
    source_ids=schemas.listed(schemas.INTEGER),
    expected_ids=schemas.listed(schemas.INTEGER),
    target_ids=schemas.listed(schemas.INTEGER),
    target_tokens=schemas.listed(schemas.TEXT),
    expected_tokens=schemas.listed(schemas.TEXT),
    source_padding=schemas.INTEGER,
    target_padding=schemas.INTEGER,
    match=MATCH,
)
_ANSWER = schemas.record(
    id=schemas.TEXT,
    source=schemas.TEXT,
    target=schemas.TEXT,
    alignment_heads=_HEADS,
    nodes=schemas.listed(_NODE),
)
# One sentence has its fields at the top level, a list has `sentences`.
_ANSWER["properties"] |= {**_SENTENCE["properties"], "sentences": schemas.listed(_SENTENCE)}
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/trace",
        handler=_trace,
        style=STYLE,
        tag=TAG,
        summary="Trace sentences: every named tensor of a translation, with shape and formula.",
        fields=_TRACED,
        answer=_ANSWER,
        errors={501: "Tracing needs PyTorch, which is not installed."},
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}",
        handler=_tensors,
        style=STYLE,
        tag=TAG,
        summary="Read several tensors of a trace, one behind the other.",
        fields=(_ENDING, _BATCH, _DTYPE),
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
        fields=(_BATCH, _DTYPE),
        media_type=BYTES,
    ),
)
