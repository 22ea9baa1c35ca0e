"""`Refusal`: an error response to a request; each API gives it its own format."""

from collections.abc import Mapping


class Refusal(Exception):
    """An error of a request, as an HTTP status and a sentence.

    Args:
        status: HTTP status, 400 to 599.
        sentence: the error, and the remedy. It never holds the text to translate.
        code: a word for programs to compare, such as `too_large`.
        field: the wrong parameter, if there is one.
        headers: headers added to the response, such as `Retry-After`.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        code: str = "",
        field: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.code = code
        self.field = field
        self.headers = dict(headers or {})
