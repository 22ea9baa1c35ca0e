"""`JsonAnswer`: an answer in JSON."""

import json
from typing import Any

from starlette.responses import Response

# Made once: Starlette's own class makes an encoder for each answer.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class JsonAnswer(Response):
    """A value of JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The value in UTF-8.

        Raises:
            ValueError: a number is NaN or infinite.
        """
        return _encode(content).encode()
