"""Alignment heads: the attention of a model that is read as an alignment, stored with it.

`heed.explain.attention.choice` finds them on development data.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

from heed.bundle.beside import save_beside
from heed.bundle.find import ALIGNMENT_HEADS
from heed.disk.files import parse_json, to_json
from heed.errors import FormatError

FORMAT = "heed alignment heads 1"


@dataclass(frozen=True, kw_only=True, slots=True)
class AlignmentHeads:
    """The heads of one decoder layer whose mean is read as an alignment.

    Translations take theirs from all heads of `documents_layer`.

    Attributes:
        layer: from 0; negative = from the end.
        heads: from 0; none = all of the layer.
        is_shifted: a target token is aligned by the step that reads it, and not by the step that
            writes it (Chen et al. 2020, "Accurate Word Alignment Induction from Neural Machine
            Translation", section 3).
        error_rate: AER when they were chosen, or None.
        measure: the reference alignment of that AER.
        documents_layer: the layer whose mean is read for the word alignment that places tags and
            terms.
    """

    layer: int = -1
    heads: tuple[int, ...] = ()
    is_shifted: bool = False
    error_rate: float | None = None
    measure: str = ""
    documents_layer: int = -1

    def __str__(self) -> str:
        which = "mean of all heads" if not self.heads else f"head {', '.join(map(str, self.heads))}"
        step = "reads" if self.is_shifted else "writes"
        return f"layer {self.layer}, {which}, at the step that {step} the token"

    def for_documents(self) -> "AlignmentHeads":
        """All heads of `documents_layer`."""
        return AlignmentHeads(layer=self.documents_layer)

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return to_json({"format": FORMAT, **asdict(self), "heads": list(self.heads)})

    @classmethod
    def from_bytes(cls, data: bytes, where: str | PathLike[str]) -> "AlignmentHeads":
        """Read the result of `to_bytes`.

        Raises:
            FormatError: it is something else.
        """
        values = parse_json(data, where)
        if values.pop("format", None) != FORMAT or not _is_sound(values):
            raise FormatError(f"{where} is not in heed's format for alignment heads.")
        return cls(**(values | {"heads": tuple(values["heads"])}))


def save_alignment_heads(path: str | PathLike[str], heads: AlignmentHeads) -> Path:
    """Write the alignment heads of a model beside its weights.

    Args:
        path: a model folder, or a run folder.
        heads: the heads to store.

    Returns:
        The folder.

    Raises:
        ConfigError: the run has not ended, so its model will be replaced.
        FormatError: it is not a model folder.
        RunError: the disk is full or read-only, or permission is denied.
    """
    return save_beside(path, {ALIGNMENT_HEADS: heads.to_bytes()}, replaced=(ALIGNMENT_HEADS,))


def _is_sound(values: Mapping[str, Any]) -> bool:
    heads = values.get("heads")
    return (
        values.keys() == {field.name for field in fields(AlignmentHeads)}
        and type(values["layer"]) is int
        and type(values["documents_layer"]) is int
        and isinstance(heads, list)
        and all(type(head) is int and head >= 0 for head in heads)
        and type(values["is_shifted"]) is bool
        and isinstance(values["error_rate"], float | None)
        and isinstance(values["measure"], str)
    )
