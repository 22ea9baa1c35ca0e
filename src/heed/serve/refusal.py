"""`Refusal`: a request that is answered with an error; each API spells it in its own shape."""

from collections.abc import Mapping


class Refusal(Exception):
    """What was wrong with a request, as an HTTP status and a sentence.

    Args:
        status: of the answer, 400 to 599.
        sentence: what was wrong, and what to do. Never holds the text to translate.
        code: a word that programs may compare, such as `too_large`.
        field: the parameter that was wrong, if one was.
        headers: added to the answer, such as `Retry-After`.
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
