"""A token bucket refills evenly."""

from hypothesis import given
from hypothesis import strategies as st

from heed.serve.access.rates import Rates


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_minute_allows_as_many_as_it_says() -> None:
    clock = Clock()
    rates = Rates(clock=clock)
    assert [rates.take("a", 1, per_minute=3).is_allowed for _ in range(4)] == [True] * 3 + [False]
    refused = rates.take("a", 1, per_minute=3)
    assert refused.headers() == {
        "RateLimit-Limit": "3",
        "RateLimit-Remaining": "0",
        "RateLimit-Reset": "60",
        "Retry-After": "20",
    }
    clock.now += 20
    assert rates.take("a", 1, per_minute=3).is_allowed
    assert not rates.take("a", 1, per_minute=3).is_allowed
    assert rates.take("b", 1, per_minute=3).headers()["RateLimit-Remaining"] == "2"


def test_a_list_costs_as_many_as_it_has_texts() -> None:
    rates = Rates(clock=Clock())
    assert rates.take("a", 8, per_minute=10).remaining == 2
    assert not rates.take("a", 3, per_minute=10).is_allowed
    assert rates.take("a", 2, per_minute=10).is_allowed


def test_a_list_larger_than_the_bucket_leaves_a_debt() -> None:
    clock = Clock()
    rates = Rates(clock=clock)
    assert rates.take("a", 30, per_minute=10).is_allowed
    clock.now += 119
    assert not rates.take("a", 1, per_minute=10).is_allowed
    clock.now += 8
    assert rates.take("a", 1, per_minute=10).is_allowed


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 20)), max_size=60),
    st.integers(1, 100),
    st.floats(0.1, 2),
)
def test_what_is_allowed_never_exceeds_bucket_and_refill(
    requests: list[tuple[float, int]], per_minute: int, burst: float
) -> None:
    clock = Clock()
    rates = Rates(burst=burst, clock=clock)
    allowed = 0
    largest = max((n_texts for _, n_texts in requests), default=0)
    for pause, n_texts in requests:
        clock.now += pause
        taken = rates.take("a", n_texts, per_minute=per_minute)
        if taken.is_allowed:
            allowed += n_texts
        else:
            # The client that waits as long as it is told is let in.
            before = clock.now
            clock.now += taken.wait_s
            assert rates.take("a", n_texts, per_minute=per_minute).is_allowed
            allowed += n_texts
            assert clock.now > before
    size = max(1.0, per_minute * burst)
    assert allowed <= size + (clock.now - 1000) * per_minute / 60 + largest + 1e-6
