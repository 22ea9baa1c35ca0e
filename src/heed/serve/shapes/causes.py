"""heed's own API, causal analysis: change a traced model and return the effects."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heed.serve.inside.causes import Change, causes_of, with_pair
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.body import Parameters
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field, take
from heed.serve.shapes.own import PREFIX, STYLE, TAG
from heed.serve.shapes.traces import traces_of

if TYPE_CHECKING:
    from heed.explain.causes.pair import Pair
    from heed.model.interface import Floats

MAX_CHANGES = 256
METHODS = ("gradient", "integrated", "erasure", "masking", "deletion")


def _number(name: str, about: str, *, is_required: bool = True) -> Field:
    return Field(name=name, kind="integer", about=about, is_required=is_required, low=0, high=10**6)


def _name(name: str, about: str, *, is_required: bool = True) -> Field:
    return Field(name=name, kind="word", about=about, is_required=is_required)


_SCALE = Field(
    name="scale", kind="number", about="0 = off, 1 = as it is.", default=0.0, low=-100, high=100
)
_KINDS: dict[str, tuple[Field, ...]] = {
    "head": (_name("attention", "A sublayer."), _number("head", "Which."), _SCALE),
    "sublayer": (_name("name", "Which."), _SCALE),
    "layer": (_name("name", "Which."), _SCALE),
    "feature": (_name("feed_forward", "A network."), _number("feature", "Which."), _SCALE),
    "position": (
        _name("attention", "A sublayer; by default all that read the source.", is_required=False),
        _number("position", "Among the keys."),
        _SCALE,
    ),
    "patch": (
        _name("name", "Of the tensor."),
        _name("trace", "Id of the trace it is taken from."),
        Field(name="positions", kind="object", about="Of this sentence → of the other."),
        _number("head", "The only one that is patched.", is_required=False),
    ),
}
"""Maps the kind of a change to its parameters."""
_KIND = Field(
    name="kind", kind="word", about="What is changed.", is_required=True, choices=tuple(_KINDS)
)
_CHANGES = Field(
    name="changes",
    kind="objects",
    about="What is changed, all at once. `kind` is head (`attention`, `head`), sublayer or layer "
    "(`name`), feature (`feed_forward`, `feature`), position (`position`, and `attention`, by "
    "default all that read the source), each with a `scale` (0 = off); or patch (`name` of a "
    "tensor, `trace` it is taken from, `positions`, by default all, and `head`).",
    is_required=True,
    example=[{"kind": "layer", "name": "decoder.0", "scale": 0}],
)
_OPTIONS = Field(
    name="options",
    kind="object",
    about="Options of decoding, such as `beam_size`.",
    default={},
    example={"beam_size": 2},
)
_ATTENTION = Field(
    name="attention",
    kind="word",
    about="A sublayer whose weights are wanted.",
    is_required=True,
    example="decoder.0.cross_attention",
)
_METHOD = Field(
    name="method",
    kind="word",
    about="gradient × input, integrated gradients, or one token replaced by `<unk>`, masked or "
    "deleted.",
    default="erasure",
    choices=METHODS,
)
_N_FEATURES = Field(
    name="features",
    kind="integer",
    about="How many feed-forward features are switched off, the strongest.",
    default=0,
    low=0,
    high=500,
)
_K = Field(name="k", kind="integer", about="How many pieces.", default=5, low=1, high=50, example=3)


async def _attention(service: Service, asked: Asked) -> dict[str, Any]:
    changes = _changes(asked)

    def run(pair: "Pair") -> dict[str, Any]:
        from heed.explain.causes.effects import attention_under

        name = asked.values["attention"]
        both = {"before": [], "after": causes_of(pair, changes)}
        return {
            when: [[_listed(row) for row in head] for head in attention_under(pair, causes, name)]
            for when, causes in both.items()
        }

    return await _run(service, asked, run)


async def _edit(service: Service, asked: Asked) -> dict[str, Any]:
    changes = _changes(asked)

    def run(pair: "Pair") -> dict[str, Any]:
        from heed.explain.causes.effects import effect_on

        found = effect_on(pair, causes_of(pair, changes))
        return {
            "translation": found.translation,
            "new_translation": found.new_translation,
            "tokens": found.tokens,
            "before": _listed(found.before),
            "after": _listed(found.after),
            "likeliest": found.likeliest,
            "likeliest_log_probs": _listed(found.likeliest_log_probs),
        }

    return await _run(service, asked, run, asked.values["options"])


def _changes(asked: Asked) -> list[Change]:
    """All changes, checked.

    Raises:
        Refusal: there are too many, or one is not valid.
    """
    given = asked.values["changes"]
    if len(given) > MAX_CHANGES:
        raise Refusal(400, f"changes must have at most {MAX_CHANGES} entries.", code="too_many")
    return [_change(asked, values) for values in given]


def _change(asked: Asked, values: Mapping[str, Any]) -> Change:
    """One change, its parameters checked."""
    given = Parameters(values=values)
    kind = take([_KIND], given, STYLE)["kind"]
    found = take(_KINDS[kind], given, STYLE)
    if kind != "patch":
        return Change(kind=kind, values=found)
    other = traces_of(asked).get(found.pop("trace")).sentence
    positions = found["positions"]
    if positions is not None:
        try:
            found["positions"] = {int(here): int(there) for here, there in positions.items()}
        except (TypeError, ValueError):
            raise Refusal(
                400, "positions must be whole numbers.", code="wrong_value", field="positions"
            ) from None
    return Change(kind=kind, values=found, other=other)


async def _importance(service: Service, asked: Asked) -> dict[str, Any]:
    def run(pair: "Pair") -> dict[str, Any]:
        from heed.explain.causes.effects import importance

        found = importance(pair, n_features=asked.values["features"])
        return {
            "tokens": found.tokens,
            "heads": [
                {"name": name, "lost": [_listed(row) for row in lost]}
                for name, lost in found.heads.items()
            ],
            "sublayers": _named(found.sublayers),
            "layers": _named(found.layers),
            "features": [
                {"name": one.feed_forward, "feature": one.feature, "lost": _listed(lost)}
                for one, lost in found.features
            ],
        }

    return await _run(service, asked, run)


async def _attribute(service: Service, asked: Asked) -> dict[str, Any]:
    def run(pair: "Pair") -> dict[str, Any]:
        from heed.explain.causes.attribution import METHODS as BY_NAME

        found = BY_NAME[asked.values["method"]](pair)
        return {
            "source_tokens": found.source_tokens,
            "target_tokens": found.target_tokens,
            "expected_tokens": found.expected_tokens,
            "source": [_listed(row) for row in found.source],
            "target": [_listed(row) for row in found.target],
            "gap": round(found.gap, 6),
        }

    return await _run(service, asked, run)


async def _lens(service: Service, asked: Asked) -> dict[str, Any]:
    def run(pair: "Pair") -> dict[str, Any]:
        from heed.explain.causes.lens import logit_lens, nearest_embeddings
        from heed.explain.causes.parts import layers_of

        has_encoder = any(name.startswith("encoder") for name in layers_of(pair))
        found = {
            "decoder": logit_lens(pair, k=asked.values["k"]),
            "encoder": nearest_embeddings(pair, k=asked.values["k"]) if has_encoder else [],
        }
        return {
            side: [
                {
                    "layer": one.layer,
                    "pieces": one.pieces,
                    "values": [_listed(row) for row in one.values],
                    "own": _listed(one.own),
                }
                for one in readings
            ]
            for side, readings in found.items()
        }

    return await _run(service, asked, run)


async def _run(
    service: Service, asked: Asked, run: Any, options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    kept = traces_of(asked).get(asked.http.path_params["id"])
    found: dict[str, Any] = await with_pair(service, kept, run, options or {})
    return found


def _named(lost: "Mapping[str, Floats]") -> list[dict[str, Any]]:
    return [{"name": name, "lost": _listed(row)} for name, row in lost.items()]


def _listed(row: "Floats") -> list[float]:
    """Numbers for JSON."""
    return [round(number, 6) for number in row.tolist()]


_NUMBERS = schemas.listed(schemas.NUMBER)
_ROWS = schemas.listed(_NUMBERS)
_TEXTS = schemas.listed(schemas.TEXT)
_LOST = schemas.listed(schemas.record(name=schemas.TEXT, lost=_NUMBERS))
_READINGS = schemas.listed(
    schemas.record(layer=schemas.TEXT, pieces=schemas.listed(_TEXTS), values=_ROWS, own=_NUMBERS)
)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/trace/{{id}}/edit",
        handler=_edit,
        style=STYLE,
        tag=TAG,
        summary="Switch off, scale or patch parts of the model, and tell what follows.",
        fields=(_CHANGES, _OPTIONS),
        answer=schemas.record(
            translation=schemas.TEXT,
            new_translation=schemas.TEXT,
            tokens=_TEXTS,
            before=_NUMBERS,
            after=_NUMBERS,
            likeliest=_TEXTS,
            likeliest_log_probs=_NUMBERS,
        ),
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/trace/{{id}}/attention",
        handler=_attention,
        style=STYLE,
        tag=TAG,
        summary="Tell what an attention reads before and after changes of the model.",
        fields=(_CHANGES, _ATTENTION),
        answer=schemas.record(before=schemas.listed(_ROWS), after=schemas.listed(_ROWS)),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/importance",
        handler=_importance,
        style=STYLE,
        tag=TAG,
        summary="Tell what log-prob each target token loses without each head, sublayer and layer.",
        fields=(_N_FEATURES,),
        answer=schemas.record(
            tokens=_TEXTS,
            heads=schemas.listed(schemas.record(name=schemas.TEXT, lost=_ROWS)),
            sublayers=_LOST,
            layers=_LOST,
            features=schemas.listed(
                schemas.record(name=schemas.TEXT, feature=schemas.INTEGER, lost=_NUMBERS)
            ),
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/attribute",
        handler=_attribute,
        style=STYLE,
        tag=TAG,
        summary="Tell what each token adds to the log-prob of each target token.",
        fields=(_METHOD,),
        answer=schemas.record(
            source_tokens=_TEXTS,
            target_tokens=_TEXTS,
            expected_tokens=_TEXTS,
            source=_ROWS,
            target=_ROWS,
            gap=schemas.NUMBER,
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/trace/{{id}}/lens",
        handler=_lens,
        style=STYLE,
        tag=TAG,
        summary="Tell what each layer would say if it were the last.",
        fields=(_K,),
        answer=schemas.record(decoder=_READINGS, encoder=_READINGS),
    ),
)
