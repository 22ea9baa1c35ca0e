"""The parameters of a request, from a JSON body, a form or the query, within the limits."""

import json
from typing import Any

from starlette.requests import Request

from heed.serve.refusal import Refusal


async def read_parameters(request: Request, max_bytes: int) -> dict[str, Any]:
    """All parameters by name; those of the body win.

    Raises:
        Refusal: the body is too long (413) or not what its type says (400).
    """
    found: dict[str, Any] = dict(request.query_params)
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > max_bytes:
            raise Refusal(413, f"The body must have at most {max_bytes} bytes.", code="too_large")
    if not data:
        return found
    try:
        values = json.loads(data)
    except ValueError:
        raise Refusal(400, "The body is not valid JSON.", code="not_json") from None
    if not isinstance(values, dict):
        raise Refusal(400, "The body must be a JSON object.", code="not_json")
    return {**found, **values}
