"""Jobs take turns, and batches hold what fits together."""

import asyncio
from collections.abc import Callable

from tests.serve.work.stand_ins import StandIn, make_job

from heed.serve.work.job import Errand, second_turns
from heed.serve.work.queue import Batch, Queue
from heed.serve.work.results import Results


def in_loop(test: Callable[[], None]) -> Callable[[], None]:
    """Results belong to an event loop."""

    def run() -> None:
        async def inner() -> None:
            test()

        asyncio.run(inner())

    return run


def take(queue: Queue) -> list[int]:
    """The first ids of the parts of the next batch: which job each is of."""
    batch = queue.take()
    assert isinstance(batch, Batch)
    return [part.chunk.src_ids[0] for part in batch.parts]


@in_loop
def test_a_request_of_one_line_does_not_wait_for_one_of_a_thousand() -> None:
    queue, call = Queue(batch_tokens=80), StandIn().call()
    queue.add(make_job(call, *[10] * 1000, first_id=1))
    assert take(queue) == [1] * 8
    queue.add(make_job(call, 10, first_id=2))
    assert 2 in take(queue)


@in_loop
def test_a_batch_has_a_part_of_each_job_in_turn() -> None:
    queue, call = Queue(batch_tokens=80), StandIn().call()
    for number in (1, 2, 3):
        queue.add(make_job(call, *[10] * 20, first_id=number))
    assert take(queue) == [1, 2, 3, 1, 2, 3, 1, 2]
    assert take(queue) == [2, 3, 1, 2, 3, 1, 2, 3]


@in_loop
def test_jobs_of_other_calls_have_their_own_turns() -> None:
    queue, one, other = Queue(batch_tokens=80), StandIn().call(), StandIn().call()
    queue.add(make_job(one, *[10] * 20, first_id=1))
    queue.add(make_job(other, *[10] * 20, first_id=2))
    queue.add(make_job(one, *[10] * 20, first_id=3))
    assert [set(take(queue)) for _ in range(4)] == [{1, 3}, {2}, {1, 3}, {1, 3}]


@in_loop
def test_other_options_are_another_call() -> None:
    queue, model = Queue(batch_tokens=80), StandIn()
    queue.add(make_job(model.call(), 10, first_id=1))
    queue.add(make_job(model.call(length_penalty=2.0), 10, first_id=2))
    queue.add(make_job(model.call(), 10, first_id=3))
    assert [take(queue) for _ in range(2)] == [[1, 3], [2]]


@in_loop
def test_a_long_line_does_not_hold_up_short_ones() -> None:
    queue, call = Queue(batch_tokens=1000), StandIn().call()
    queue.add(make_job(call, 5, 100, 6, first_id=1))
    queue.add(make_job(call, 90, 7, first_id=2))
    lengths = []
    while batch := queue.take():
        assert isinstance(batch, Batch)
        lengths.append(sorted(part.n_tokens for part in batch.parts))
    assert lengths == [[5, 6, 7], [90, 100]]


@in_loop
def test_positions_count_the_beam_and_the_longest_part() -> None:
    queue, model = Queue(batch_tokens=120), StandIn()
    queue.add(make_job(model.call(beam_size=4), 10, 15, 10, 10))
    batch = queue.take()
    assert isinstance(batch, Batch)
    assert (len(batch.parts), batch.n_positions, batch.is_full) == (2, 120, True)


@in_loop
def test_a_part_larger_than_a_batch_goes_alone() -> None:
    queue, call = Queue(batch_tokens=16), StandIn().call()
    queue.add(make_job(call, 100, 100, first_id=1))
    assert [take(queue), take(queue), queue.take()] == [[1], [1], None]


@in_loop
def test_second_searches_have_turns_and_batches_of_their_own() -> None:
    queue, call = Queue(batch_tokens=80), StandIn().call()
    doubtful = [make_job(call, 10, 10, first_id=1), make_job(call, 10, first_id=3)]
    queue.add(make_job(call, 10, first_id=2))
    for turns in second_turns(part for job in doubtful for part in job.waiting):
        queue.add(turns)
    queue.add(make_job(call, 10, first_id=4))
    assert (queue.n_new, len(queue.jobs)) == (2, 4)
    assert [take(queue) for _ in range(2)] == [[2, 4], [1, 3, 1]]
    assert queue.take() is None


@in_loop
def test_abandoned_jobs_leave_the_queue() -> None:
    queue, call = Queue(batch_tokens=16), StandIn().call()
    gone = make_job(call, 10, first_id=1)
    queue.add(gone)
    queue.add(make_job(call, 10, first_id=2))
    gone.results.abandon()
    assert [take(queue), queue.take()] == [[2], None]


@in_loop
def test_an_errand_has_one_turn() -> None:
    queue, call = Queue(batch_tokens=16), StandIn().call()
    errand = Errand(lambda is_wanted: 1, n_chars=1, results=Results(1, timeout_s=9))
    queue.add(make_job(call, 10, 10, first_id=1))
    queue.add(errand)
    assert [take(queue), queue.take(), take(queue), queue.take()] == [[1], errand, [1], None]
