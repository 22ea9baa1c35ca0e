"""JSON Schemas shared by several endpoints, by name; `ref` refers to one."""

from typing import Any


def ref(name: str) -> dict[str, str]:
    """A reference to a shared schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def record(**properties: Any) -> dict[str, Any]:
    """An object that has all of these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def listed(items: Any) -> dict[str, Any]:
    """A list of items of one schema."""
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
FLAG = {"type": "boolean"}
NUMBER_OR_NULL = {"type": ["number", "null"]}
INTEGER_OR_NULL = {"type": ["integer", "null"]}

_PIECE = {"piece": TEXT, "start": INTEGER, "end": INTEGER}
_SEGMENT = record(
    source=TEXT, text=TEXT, score=NUMBER_OR_NULL, status=TEXT, confidence=NUMBER_OR_NULL
)
SHARED: dict[str, dict[str, Any]] = {
    "Translation": record(
        text=TEXT,
        source=TEXT,
        confidence=NUMBER_OR_NULL,
        model=TEXT,
        alternatives=listed(record(text=TEXT, score=NUMBER_OR_NULL)),
        doubts=listed(ref("Doubt")),
        segments=listed(ref("Segment")),
    ),
    "Doubt": record(
        kind=TEXT,
        sentence=TEXT,
        segment=INTEGER_OR_NULL,
        start=INTEGER_OR_NULL,
        end=INTEGER_OR_NULL,
    ),
    # The last four are present only with `details`.
    "Segment": {
        **_SEGMENT,
        "properties": {
            **_SEGMENT["properties"],
            "tokens": listed(ref("Token")),
            "source_tokens": listed(record(**_PIECE)),
            "alignment": listed(listed(NUMBER)),
            "memory": listed(NUMBER),
        },
    },
    "Token": record(**_PIECE, text=TEXT, probability=NUMBER_OR_NULL),
    "Language": record(code=TEXT, name=TEXT, targets=listed(TEXT)),
}
