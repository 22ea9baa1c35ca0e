"""`Gate`: admit or refuse a request, by its key and the client's rate limit.

It looks twice: at the head of a request, before the body is read, and at all of its parameters.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers

from heed.disk.home import home
from heed.errors import ConfigError
from heed.serve.access.addresses import bucket_of, client_address, networks_of
from heed.serve.access.buckets import Buckets
from heed.serve.access.keys import FILE_NAME, Key, KeyReader, Keys
from heed.serve.access.origins import is_of_other_page
from heed.serve.access.rates import Rates
from heed.serve.refusal import Refusal
from heed.serve.settings import Access, ServeSettings, origin_in_ascii

IN_BODY = ("api_key", "auth_key", "key", "token")
"""Names of parameters in which LibreTranslate, DeepL, Google and DeepLX clients send a key."""

IN_AUTHORIZATION = ("bearer", "deepl-auth-key")

log = logging.getLogger(__name__)


def keys_path(access: Access) -> Path:
    """The file of keys.

    Raises:
        ConfigError: no file is given, and this user has no home folder.
    """
    return Path(access.keys_file) if access.keys_file else home() / FILE_NAME


@dataclass(frozen=True, kw_only=True)
class Admission:
    """An admitted request.

    Attributes:
        key: the name of its key; empty on a server without keys.
        most_chars: characters that its key allows per request; 0 = no such limit.
        headers: headers for the response.
    """

    key: str = ""
    most_chars: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


class Gate:
    """Admits requests.

    Args:
        settings: settings of the server.
        buckets: quotas of its clients.

    Raises:
        ConfigError: keys are needed, and their file cannot be used.
    """

    def __init__(self, settings: ServeSettings, buckets: Buckets) -> None:
        path = keys_path(settings.access) if settings.needs_keys else None
        self._keys = KeyReader(Keys(path)) if path else None
        self._trusted = networks_of(settings.listen.trusted_proxies)
        self._origins = frozenset(map(origin_in_ascii, settings.access.origins))
        self._per_minute = settings.access.per_minute
        self._buckets = buckets
        self._rates = Rates(burst=settings.access.burst, buckets=buckets)

    @property
    def needs_keys(self) -> bool:
        """Whether requests need a key."""
        return self._keys is not None

    async def look(
        self, *, headers: Headers, query: Mapping[str, Any], in_body: bool, stores: bool
    ) -> Key | None:
        """Refuse a request by its head, before its body is read.

        Args:
            headers: headers of the request.
            query: parameters in its URL.
            in_body: whether the body may have a parameter for the key.
            stores: whether it stores something on the server.

        Returns:
            Its key; None = there are no keys, or it can only be in the body.

        Raises:
            Refusal: there is no valid key (401); keys cannot be checked now (503); or a page of
                another origin would store something (403).
        """
        if self._keys is None:
            # Otherwise a key is proof enough: a browser adds none by itself.
            if stores and is_of_other_page(headers, self._origins):
                raise _of_other_page()
            return None
        given = key_in(headers, query)
        return await self._key(self._keys, given) if given or not in_body else None

    async def admit(
        self,
        *,
        key: Key | None,
        peer: str,
        headers: Headers,
        values: Mapping[str, Any],
        n_texts: int,
        n_chars: int,
    ) -> Admission:
        """Admit a request, and count it.

        Args:
            key: the result of `look`.
            peer: address of the other end of the connection.
            headers: headers of the request.
            values: its parameters, which may include a key.
            n_texts: number of texts, which is its cost.
            n_chars: number of characters in all its texts.

        Raises:
            Refusal: there is no valid key (401), keys cannot be checked now (503), there is too
                much text (400) or there are too many requests (429).
        """
        if key is None and self._keys is not None:
            key = await self._key(self._keys, key_in(headers, values))
        if key and key.chars and n_chars > key.chars:
            raise Refusal(
                400,
                f"Invalid request: request ({n_chars}) exceeds text limit ({key.chars})",
                code="too_long",
            )
        name, most_chars = (key.name, key.chars) if key else ("", 0)
        per_minute = key.per_minute if key else self._per_minute
        if not per_minute:
            return Admission(key=name, most_chars=most_chars)
        client = f"key {name}" if key else self._address(peer, headers)
        taken = self._rates.take(client, n_texts, per_minute=per_minute)
        if not taken.is_allowed:
            raise Refusal(
                429,
                f"Slowdown: {per_minute} per 1 minute. Try again in {taken.wait_s} s.",
                code="too_many_requests",
                headers=taken.headers(),
            )
        return Admission(key=name, most_chars=most_chars, headers=taken.headers())

    def owner(self, key: str, *, peer: str, headers: Headers) -> str:
        """The client to whom stored data is attributed.

        Args:
            key: name of its key; empty on a server without keys.
            peer: address of the other end of the connection.
            headers: headers of its request.

        Returns:
            The key's name; without keys a hash of the address, which means nothing once the server
            has ended.
        """
        return key or f"@{self._buckets.mark(self._address(peer, headers))}"

    def _address(self, peer: str, headers: Headers) -> str:
        forwarded = ", ".join(headers.getlist("x-forwarded-for"))
        return bucket_of(client_address(peer, forwarded, self._trusted))

    async def _key(self, keys: KeyReader, given: str) -> Key:
        # Search even without a key, so that every refusal takes the same time.
        try:
            key = await keys.find(given)
        except ConfigError as error:
            log.error("%s", error)  # it names the file, which is not a client's business
            sentence = "The server cannot check keys at the moment. Try again later."
            raise Refusal(503, sentence, code="no_keys") from error
        if key is None:
            raise no_key("Invalid API key")
        return key


def no_key(sentence: str, headers: Mapping[str, str] | None = None) -> Refusal:
    """The refusal of a request without a valid key."""
    challenge = {"WWW-Authenticate": "Bearer", **(headers or {})}
    return Refusal(401, sentence, code="invalid_key", headers=challenge)


def _of_other_page() -> Refusal:
    sentence = (
        "A page of another origin may not store anything on this server, unless the setting "
        "access.origins lists its origin."
    )
    return Refusal(403, sentence, code="other_origin")


def key_in(headers: Headers, values: Mapping[str, Any]) -> str:
    """The key that a client sent in a header, or else in body or query; empty = none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    if scheme.lower() in IN_AUTHORIZATION and given.strip():
        return given.strip()
    if given := headers.get("x-api-key", "").strip():
        return given
    for name in IN_BODY:
        value = values.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, str) and value:
            return value.strip()
    return ""
