"""Requests that a page of another origin makes a browser send.

A page cannot read the response, but a form of it can change what a server without keys stores.
"""

from collections.abc import Collection

from starlette.datastructures import Headers

HARMLESS = ("same-origin", "none")
"""Values of Sec-Fetch-Site: the request is of the server's own page, or of no page."""

OF_THE_WEB = ("http://", "https://", "null")
"""Beginnings of the origins of pages; browser extensions have others."""


def is_of_other_page(headers: Headers, allowed: Collection[str]) -> bool:
    """Whether a page of another origin sent a request.

    Args:
        headers: of the request. Browsers send `Origin` with a form, and `Sec-Fetch-Site` to https
            and to this machine; programs send neither.
        allowed: origins of other pages that may.

    Source: W3C, "Fetch Metadata Request Headers".
    """
    origin, site = headers.get("origin", ""), headers.get("sec-fetch-site", "")
    is_extension = bool(origin) and not origin.startswith(OF_THE_WEB)
    if site in HARMLESS or is_extension or origin in allowed:
        return False
    if site or not origin:
        return bool(site)
    return origin.partition("://")[2] not in (headers.get("host"), headers.get("x-forwarded-host"))
