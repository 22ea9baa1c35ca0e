"""Settings of `heed serve`: the sections of `serve.toml`, each a dataclass with ranges.

The command line overrides them (`cli/serve.py`).
"""

import re
import unicodedata
from dataclasses import dataclass, field, fields
from ipaddress import ip_address, ip_network
from typing import Annotated, Any, Literal

from heed.config import Range, check
from heed.errors import ConfigError

Seconds = Annotated[float, Range(0.05, 86400)]
ORIGIN = re.compile(r"(https?|[a-z-]+-extension)://[^/*\s?#]+")
"""The origin of a web page or a browser extension, as browsers write it in the header Origin."""

HOST = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)
"""A host name, in ASCII."""

Port = Annotated[int, Range(0, 65535, "Use 5000; 0 takes a free one.")]


def host_in_ascii(name: str) -> str:
    """A host name as browsers send it: in lower case, `xn--…` for labels in other letters."""
    # Python's codec `idna` follows the standard of 2003, which reads ß as ss. Browsers do not.
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).lower())
    return ".".join(
        label if label.isascii() else f"xn--{label.encode('punycode').decode()}"
        for label in folded.split(".")
    )


def origin_in_ascii(origin: str) -> str:
    """An origin as browsers send it."""
    scheme, sign, rest = origin.partition("://")
    if scheme not in ("http", "https"):
        return origin
    name, *port = rest.split(":", 1)
    return scheme + sign + ":".join((host_in_ascii(name), *port))


def _check(section: Any, name: str) -> None:
    """Compare a section with its types and ranges; no text, such as a path, may contain NUL.

    Raises:
        ConfigError: names the setting that is wrong.
    """
    check(section, name)
    for setting in fields(section):
        value = getattr(section, setting.name)
        for text in value if isinstance(value, tuple) else (value,):
            if isinstance(text, str) and "\0" in text:
                raise ConfigError(
                    f"{name}.{setting.name} must not contain the character NUL, but is {value!r}."
                )


@dataclass(frozen=True, kw_only=True)
class Listen:
    """The address to listen on, and time limits for clients.

    Attributes:
        host: address; 127.0.0.1 = this machine only.
        port: TCP port; 0 = any free port.
        processes: server processes; more than one share the weights in memory.
        certificate: PEM file of a certificate and its chain; with it the server speaks HTTPS.
        key: PEM file of its private key.
        connections: open connections per process; further ones are refused (503), with TLS closed.
        head_bytes: maximum size of request line and headers together.
        head_s: seconds for request line and headers to arrive, else 408; and for a TLS handshake.
        body_s: seconds for the body to arrive, else 408.
        write_s: seconds that a client may leave a response unread before it is cut off.
        idle_s: seconds that a connection stays open between two requests.
        grace_s: seconds after SIGTERM for answering the requests in flight.
        trusted_proxies: addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are
            trusted.
    """

    host: str = "127.0.0.1"
    port: Port = 5000
    processes: Annotated[int, Range(1, 256)] = 1
    certificate: str = ""
    key: str = ""
    connections: Annotated[int, Range(1, 1 << 20)] = 2048
    head_bytes: Annotated[int, Range(1024, 1 << 20)] = 16384
    head_s: Seconds = 10.0
    body_s: Seconds = 60.0
    write_s: Seconds = 30.0
    idle_s: Seconds = 15.0
    grace_s: Seconds = 30.0
    trusted_proxies: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, "listen")
        if bool(self.certificate) != bool(self.key):
            missing = "key" if self.certificate else "certificate"
            raise ConfigError(
                f"listen.{missing} is missing: HTTPS needs a certificate and its key."
            )
        for network in self.trusted_proxies:
            try:
                ip_network(network, strict=False)
            except ValueError:
                raise ConfigError(
                    "listen.trusted_proxies must be addresses or networks, such as 10.0.0.0/8, "
                    f"but one is {network!r}."
                ) from None

    @property
    def is_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


@dataclass(frozen=True, kw_only=True)
class Work:
    """The batching of requests.

    Attributes:
        threads: searches that run at the same time, each on one core; 0 = one per core.
        batch_tokens: source tokens times beam that a thread searches at once.
        gather_ms: longest wait of a batch for the number of requests at the last one's end.
        max_waiting_chars: characters of all waiting requests; further ones are refused (503).
        timeout_s: seconds for answering a request, else it is refused (504).
        memory_mb: limit for all models loaded at the same time; 0 = no limit.
        cache_mb: memory of the translation cache; 0 = none.
    """

    threads: Annotated[int, Range(0, 1024)] = 0
    batch_tokens: Annotated[int, Range(16, 65536)] = 4096
    gather_ms: Annotated[float, Range(0, 1000)] = 2.0
    max_waiting_chars: Annotated[int, Range(1, 1 << 40)] = 4_000_000
    timeout_s: Annotated[float, Range(0.1, 86400)] = 30.0
    memory_mb: Annotated[int, Range(0, 1 << 30)] = 0
    cache_mb: Annotated[int, Range(0, 1 << 20)] = 32

    def __post_init__(self) -> None:
        _check(self, "work")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits of one request.

    Attributes:
        body_bytes: maximum size of the body.
        keyless_bytes: maximum size of a body whose key is in it, not in a header or the URL; eight
            files at a time may be larger.
        file_bytes: maximum size of a file.
        chars: maximum number of characters in all its texts.
        texts: maximum number of texts.
        alternatives: maximum number of alternative translations of each text.
        memory_pairs: maximum number of pairs to follow; reading one takes about 0.2 ms.
    """

    body_bytes: Annotated[int, Range(1024, 1 << 32)] = 1 << 20
    keyless_bytes: Annotated[int, Range(1024, 1 << 32)] = 128 << 10
    file_bytes: Annotated[int, Range(1024, 1 << 32)] = 10 << 20
    chars: Annotated[int, Range(1, 1 << 30)] = 100_000
    texts: Annotated[int, Range(1, 1 << 20)] = 1000
    alternatives: Annotated[int, Range(0, 100)] = 10
    memory_pairs: Annotated[int, Range(0, 1 << 20)] = 100

    def __post_init__(self) -> None:
        _check(self, "limits")


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Translated pairs that all translations follow where a sentence is like one of them.

    Attributes:
        files: `.tsv`, `.csv` or `.tmx`; with several directions `SOURCE:TARGET=FILE`, such as
            en:de=today.tsv.
    """

    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, "memory")


@dataclass(frozen=True, kw_only=True)
class Glossary:
    """Terms and their translations for the texts and files of all clients.

    Attributes:
        files: glossary files; with several directions `SOURCE:TARGET=FILE`, such as
            en:de=terms.tsv. The first one with a term counts, but a request's own terms count
            before.
    """

    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, "glossary")


@dataclass(frozen=True, kw_only=True)
class Store:
    """Data that clients can store on the server.

    Attributes:
        folder: folder for the data; empty = `serve` in heed's home folder.
        glossaries: maximum number of glossaries; 0 = none can be created.
        glossaries_per_key: maximum number of glossaries of one key.
        glossary_terms: maximum number of terms in a glossary.
        suggestions: maximum number of suggestions by `/suggest`; 0 = they are refused.
        suggestions_per_client: maximum number of suggestions of one key; on a server without keys
            of one address, since the server started.
        files: maximum number of translated files to fetch; of more, the oldest of the key or
            address with the most are deleted; 0 = no files.
        file_s: seconds that they are kept.
    """

    folder: str = ""
    glossaries: Annotated[int, Range(0, 1 << 20)] = 1000
    glossaries_per_key: Annotated[int, Range(0, 1 << 20)] = 100
    glossary_terms: Annotated[int, Range(1, 1 << 20)] = 10_000
    suggestions: Annotated[int, Range(0, 1 << 30)] = 0
    suggestions_per_client: Annotated[int, Range(1, 1 << 30)] = 100
    files: Annotated[int, Range(0, 1 << 20)] = 100
    file_s: Annotated[float, Range(1, 31_536_000)] = 1800.0

    def __post_init__(self) -> None:
        _check(self, "store")


@dataclass(frozen=True, kw_only=True)
class Access:
    """API keys and rate limits.

    Attributes:
        keys: `on`: every request needs a key; `off`: none does; `auto`: needed unless only
            programs on this machine can connect.
        keys_file: SQLite file of the keys; empty = keys.sqlite in heed's home folder.
        per_minute: texts per minute from one address without a key; 0 = no limit.
        burst: texts that an address or a key may send at once, as a share of its minute.
        origins: web pages that may call the server from a browser, such as https://example.org.
        hosts: public names under which the server answers, such as example.org or größe.example;
            addresses, names without a dot and private ones are always answered. Empty = any name,
            but none if only programs on this machine can connect, without keys and without a
            trusted proxy.
    """

    keys: Literal["auto", "on", "off"] = "auto"
    keys_file: str = ""
    per_minute: Annotated[int, Range(0, 1 << 30)] = 0
    burst: Annotated[float, Range(0.01, 60)] = 1.0
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self, "access")
        for origin in self.origins:
            if not ORIGIN.fullmatch(origin):
                raise ConfigError(
                    "access.origins must be addresses like https://example.org, without a path "
                    f"and without *, but one is {origin!r}."
                )
        for host in self.hosts:
            if not HOST.fullmatch(host_in_ascii(host)):
                raise ConfigError(
                    "access.hosts must be names like example.org, without https:// and without a "
                    f"port, but one is {host!r}."
                )


@dataclass(frozen=True, kw_only=True)
class Log:
    """The log on standard error.

    Attributes:
        format: `plain` lines, or `json`, one object per line.
        level: lowest level of lines that are written.
        requests: write a line for each request: never its text, its key or its address.
    """

    format: Literal["plain", "json"] = "plain"
    level: Literal["debug", "info", "warning", "error"] = "info"
    requests: bool = True

    def __post_init__(self) -> None:
        _check(self, "log")


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """Metrics for Prometheus.

    Attributes:
        enabled: serve them at /metrics.
        token: required there, as `Authorization: Bearer`; empty = none.
    """

    enabled: bool = True
    token: str = ""

    def __post_init__(self) -> None:
        _check(self, "metrics")


@dataclass(frozen=True, kw_only=True)
class Inside:
    """Inspection of models: traces of sentences, and the screens that show them.

    Attributes:
        enabled: `on`, `off`, or `auto`: on if only programs on this machine can connect, and
            neither trusted proxies nor host names are set, as for a proxy on this machine.
        traces: traces kept at the same time, and recorded searches; the oldest are dropped.
        runs: folders of the training runs to show.
        token: clients with it may save and stop these runs; empty = no client may.
    """

    enabled: Literal["auto", "on", "off"] = "auto"
    traces: Annotated[int, Range(1, 1000)] = 8
    runs: tuple[str, ...] = ()
    token: str = ""

    def __post_init__(self) -> None:
        _check(self, "inside")


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """All settings of the server.

    Attributes:
        models: folders or names of models.
        listen: address to listen on, and time limits for clients.
        work: batching of requests.
        limits: limits of one request.
        memory: translated pairs that all translations follow.
        glossary: terms for the texts and files of all clients.
        store: data that clients can store on the server.
        access: API keys and rate limits.
        log: log on standard error.
        metrics: metrics for Prometheus.
        inside: inspection of models.
    """

    models: tuple[str, ...] = ()
    listen: Listen = field(default_factory=Listen)
    work: Work = field(default_factory=Work)
    limits: Limits = field(default_factory=Limits)
    memory: Memory = field(default_factory=Memory)
    glossary: Glossary = field(default_factory=Glossary)
    store: Store = field(default_factory=Store)
    access: Access = field(default_factory=Access)
    log: Log = field(default_factory=Log)
    metrics: Metrics = field(default_factory=Metrics)
    inside: Inside = field(default_factory=Inside)

    @property
    def needs_keys(self) -> bool:
        """Whether a request without a key is refused."""
        return self.access.keys == "on" or (
            self.access.keys == "auto" and not self.listen.is_loopback
        )

    @property
    def shows_inside(self) -> bool:
        """Whether clients may inspect models."""
        is_behind_proxy = bool(self.listen.trusted_proxies or self.access.hosts)
        return self.inside.enabled == "on" or (
            self.inside.enabled == "auto" and self.listen.is_loopback and not is_behind_proxy
        )
