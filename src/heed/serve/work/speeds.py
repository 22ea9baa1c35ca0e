"""`Speeds`: how fast each model has written lately."""

KEPT = 0.95
"""The share of a batch in the speed falls to this with each further batch."""


class Speeds:
    """Tokens a second of search, by model. One thread adds at a time; any may ask."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}

    def add(self, model: str, *, n_tokens: int, seconds: float) -> None:
        """A batch is done.

        Args:
            model: its name.
            n_tokens: written, alternatives not counted.
            seconds: of search.
        """
        tokens_so_far, seconds_so_far = self._sums.get(model, (0.0, 0.0))
        self._sums[model] = KEPT * tokens_so_far + n_tokens, KEPT * seconds_so_far + seconds

    def of(self, model: str) -> float | None:
        """Tokens a second of a thread's search; None before the first batch."""
        n_tokens, seconds = self._sums.get(model, (0.0, 0.0))
        return n_tokens / seconds if seconds else None
