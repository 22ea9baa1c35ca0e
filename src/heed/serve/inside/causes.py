"""Causal analysis of a traced sentence, run in a search thread.

torch is imported at the first request of this kind.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from heed.serve.inside.traces import Kept
from heed.serve.service import IsWanted, Service
from heed.serve.work.deadline import require_wanted
from heed.serve.work.translating import checked_options

if TYPE_CHECKING:
    from heed.explain.causes.pair import Pair
    from heed.explain.causes.parts import Cause
    from heed.translate.trace import Trace

Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of a model, as requested by a client.

    Attributes:
        kind: `head`, `sublayer`, `layer`, `feature`, `position` or `patch`.
        values: its parameters.
        other: for a patch, the trace that provides the tensor.
    """

    kind: str
    values: Mapping[str, Any]
    other: "Trace | None" = field(default=None, repr=False)


async def with_pair(
    service: Service, kept: Kept, run: "Callable[[Pair], Found]", options: Mapping[str, Any]
) -> Found:
    """Call a function with the pair of a trace, and stop it when no client waits for it.

    Args:
        service: provides the threads.
        kept: the trace.
        run: receives the pair.
        options: options of searches.

    Raises:
        Refusal: any error of `run`, as a refusal; or the time is over.
    """
    trace = kept.sentence

    def in_thread(is_wanted: IsWanted) -> Found:
        from heed.explain.causes.pair import Pair

        checked_options(kept.translator.options, options)
        check = partial(require_wanted, is_wanted)
        return run(Pair.of_trace(kept.translator, trace, before_pass=check, **dict(options)))

    return await service.in_a_thread(in_thread, len(trace.source))


def causes_of(pair: "Pair", changes: Sequence[Change]) -> "list[Cause]":
    """Convert the changes to classes of `heed.explain.causes.parts`."""
    return [cause for change in changes for cause in _causes(pair, change)]


def _causes(pair: "Pair", change: Change) -> "Sequence[Cause]":
    from heed.explain.causes import parts

    values = change.values
    match change.kind:
        case "head":
            return [parts.Head(**values)]
        case "sublayer":
            return [parts.Sublayer(**values)]
        case "layer":
            return [parts.Layer(**values)]
        case "feature":
            return [parts.Feature(**values)]
        case "position" if values["attention"] is None:
            return parts.source_readings(pair, values["position"], values["scale"])
        case "position":
            return [parts.Position(**values)]
    assert change.other is not None
    return [parts.Patch(other=change.other, **values)]
