"""Settings of `heed serve`: the sections of `serve.toml`, each a dataclass with ranges.

The command line overrides them (`cli/serve.py`).
"""

from dataclasses import dataclass, field
from typing import Annotated

from heed.config import Range, check

Port = Annotated[int, Range(0, 65535, "Use 5000; 0 takes a free one.")]


@dataclass(frozen=True, kw_only=True)
class Listen:
    """Where the server listens.

    Attributes:
        host: address; 127.0.0.1 = this machine only.
        port: TCP port; 0 = a free one.
        processes: server processes; more than one share the weights in memory.
    """

    host: str = "127.0.0.1"
    port: Port = 5000
    processes: Annotated[int, Range(1, 256)] = 1

    def __post_init__(self) -> None:
        check(self, "listen")


@dataclass(frozen=True, kw_only=True)
class Work:
    """How requests become batches.

    Attributes:
        threads: searches that run at the same time, each on one core; 0 = as many as cores.
        batch_tokens: source tokens times beam that a thread searches at once.
        gather_ms: a batch waits at most this long for more requests, while they come in numbers.
        max_waiting_chars: characters of all waiting requests; more are refused (503).
        timeout_s: seconds within which a request is answered, else refused (504).
        memory_mb: models loaded at the same time take at most this much; 0 = no limit.
        cache_mb: memory of the cache of translations; 0 = none.
    """

    threads: Annotated[int, Range(0, 1024)] = 0
    batch_tokens: Annotated[int, Range(16, 65536)] = 1024
    gather_ms: Annotated[float, Range(0, 1000)] = 2.0
    max_waiting_chars: Annotated[int, Range(1, 1 << 40)] = 4_000_000
    timeout_s: Annotated[float, Range(0.1, 86400)] = 30.0
    memory_mb: Annotated[int, Range(0, 1 << 30)] = 0
    cache_mb: Annotated[int, Range(0, 1 << 20)] = 32

    def __post_init__(self) -> None:
        check(self, "work")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request may ask for.

    Attributes:
        body_bytes: longest body.
        chars: characters of all texts of a request.
        texts: texts of a request.
        alternatives: alternative translations of each text.
    """

    body_bytes: Annotated[int, Range(1024, 1 << 32)] = 1 << 20
    chars: Annotated[int, Range(1, 1 << 30)] = 100_000
    texts: Annotated[int, Range(1, 1 << 20)] = 1000
    alternatives: Annotated[int, Range(0, 100)] = 10

    def __post_init__(self) -> None:
        check(self, "limits")


@dataclass(frozen=True, kw_only=True)
class Store:
    """What clients may leave on the server.

    Attributes:
        folder: where; empty = `serve` in heed's home folder.
        glossaries: kept at most; 0 = none can be created.
        glossary_terms: terms of a glossary.
        suggestions: kept at most, by `/suggest`; 0 = they are refused.
    """

    folder: str = ""
    glossaries: Annotated[int, Range(0, 1 << 20)] = 1000
    glossary_terms: Annotated[int, Range(1, 1 << 20)] = 10_000
    suggestions: Annotated[int, Range(0, 1 << 30)] = 0

    def __post_init__(self) -> None:
        check(self, "store")


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """All settings of the server.

    Attributes:
        models: folders or names of models.
        listen: where it listens.
        work: how requests become batches.
        limits: what one request may ask for.
        store: what clients may leave on the server.
    """

    models: tuple[str, ...] = ()
    listen: Listen = field(default_factory=Listen)
    work: Work = field(default_factory=Work)
    limits: Limits = field(default_factory=Limits)
    store: Store = field(default_factory=Store)
