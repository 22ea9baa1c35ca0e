"""`JsonAnswer`: a response in JSON."""

import json
from typing import Any

from starlette.responses import Response

from heed.text.normalize import replace_surrogates

# Made once: Starlette's own class creates an encoder for each response.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class JsonAnswer(Response):
    """A response with a JSON value."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The value in UTF-8; a lone surrogate, as in the name of an unknown option, is U+FFFD.

        Raises:
            ValueError: a number is NaN or infinite.
        """
        text = _encode(content)
        try:
            return text.encode()
        except UnicodeEncodeError:
            return replace_surrogates(text).encode()
