"""`JsonAnswer`: a response in JSON."""

import json
from typing import Any

from starlette.responses import Response

# Made once: Starlette's own class creates an encoder for each response.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class JsonAnswer(Response):
    """A response with a JSON value."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The value in UTF-8.

        Raises:
            ValueError: a number is NaN or infinite.
        """
        return _encode(content).encode()
