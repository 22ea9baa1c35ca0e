"""`Speeds`: the recent speed of each model."""

KEPT = 0.95
"""Factor for a batch's weight in the speed with each further batch."""


class Speeds:
    """Target tokens per second of search, by model. One thread adds at a time; any may read."""

    def __init__(self) -> None:
        self._sums: dict[str, tuple[float, float]] = {}

    def add(self, model: str, *, n_tokens: int, seconds: float) -> None:
        """Add a finished batch.

        Args:
            model: name of the model.
            n_tokens: number of target tokens, without alternatives.
            seconds: time of the search.
        """
        tokens_so_far, seconds_so_far = self._sums.get(model, (0.0, 0.0))
        self._sums[model] = KEPT * tokens_so_far + n_tokens, KEPT * seconds_so_far + seconds

    def of(self, model: str) -> float | None:
        """Tokens per second of one search thread; None before the first batch."""
        n_tokens, seconds = self._sums.get(model, (0.0, 0.0))
        return n_tokens / seconds if seconds else None
