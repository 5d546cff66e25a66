"""The dispatcher against its written bound alone: a host and an executor of their own, no rule shared with the twin.

Covers: rtl/dispatch/ages.py.
"""

import random

import pytest
from amaranth.sim import Simulator

from rtl.dispatch.dispatcher import Dispatcher
from tests.cases import sweep

TIME = 8
PERIOD = 2**TIME
#: Of docs/design/07-dispatcher.md: cycles for each thing that is started; the causes of a policy and of a time.
OVERHEAD, TIME_ERROR = 15, 8


def serve(arrivals, timeout, quantum, service, batch=1, cycles=60_000, depth=4, inference=lambda cycle: True):
    """Serve requests at given cycles, every run as long as it may be.

    Returns
    -------
    list of (int, int, int, int)
        Of each request that is done: cycle of its arrival, requests that waited then with it, latency, and whether the
        time error was set when its completion had been taken.
    list of int
        Values of the first counters.
    """
    part, done, counters = Dispatcher(depth=depth, address=8, tag=16, time=TIME, counter=32), [], []

    async def bench(ctx):
        policy = part.policy
        for port, value in ((policy.training, 1), (policy.priority, 1), (policy.batch, batch), (policy.share, 16),
                            (policy.timeout, timeout), (part.o_start.ready, 1), (part.o_item.ready, 1),
                            (part.o_completion.ready, 1), (part.o_counter.ready, 1)):
            ctx.set(port, value)
        entered, ends, running, waiting, pending = [], None, [], [], list(arrivals)
        finished, ready = {}, False
        for cycle in range(cycles):
            if len(done) == len(arrivals):
                break
            ctx.set(policy.inference, inference(cycle))
            offers = bool(pending) and pending[0] <= cycle
            ctx.set(part.i_request.valid, offers)
            ctx.set(part.i_request.payload.tag, len(entered))
            ctx.set(part.i_done.valid, ends is not None and cycle >= ends)
            if done and ready:    # the error of the completion that was taken a cycle ago
                done[-1] += (bool(ctx.get(part.error) & TIME_ERROR),)
                ctx.set(part.clear, 1)
            else:
                ctx.set(part.clear, 0)
            ready = bool(ctx.get(part.o_completion.valid))
            if ready:
                tag = ctx.get(part.o_completion.payload.tag)
                done.append((*entered[tag], finished[tag] - entered[tag][0]))
            if ends is not None and cycle >= ends and ctx.get(part.i_done.ready):
                finished |= dict.fromkeys(running, cycle)
                running, ends = [], None
            if ctx.get(part.o_start.valid):
                training = ctx.get(part.o_start.payload.training)
                count = ctx.get(part.o_start.payload.count)
                running, waiting = waiting[:count], waiting[count:]
                ctx.set(part.i_done.payload.training, training)
                ends = cycle + (quantum if training else service)
            if offers and ctx.get(part.i_request.ready):
                waiting.append(len(entered))
                entered.append((cycle, len(waiting)))
                pending.pop(0)
            await ctx.tick()
        if done and len(done[-1]) < 4:
            done[-1] += (bool(ctx.get(part.error) & TIME_ERROR),)
        for address in range(3):
            ctx.set(part.i_counter.payload, address)
            ctx.set(part.i_counter.valid, 1)
            await ctx.tick().until(part.i_counter.ready)
            ctx.set(part.i_counter.valid, 0)
            counters.append((await ctx.tick().sample(part.o_counter.payload).until(part.o_counter.valid))[0])

    simulator = Simulator(part)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return done, counters


def check(found, arrivals, timeout, quantum, service, batch):
    """Every request is served within the bound, and the error and the counters tell which latencies times hold."""
    done, counters = found
    assert len(done) == len(arrivals), "a request was not served"
    latencies = [latency for _, _, latency, _ in done]
    for arrival, waiting, latency, error in done:
        batches = -(-waiting // batch)
        assert latency <= timeout + max(quantum, service) + batches * service + (batches + 1) * OVERHEAD, arrival
        assert error == (latency >= PERIOD), (arrival, latency)
    held = [min(latency, PERIOD - 1) for latency in latencies]
    assert counters == [len(done), sum(held), max(held)]


@pytest.mark.parametrize("phase", sweep(2, range(0, 240, 60)))
def test_a_lone_request_is_served_where_timeout_and_quantum_exceed_a_period(phase):
    """The age of a request passes the timeout and wraps while a quantum runs."""
    arrivals = [300 + phase]
    check(serve(arrivals, 200, 250, 30, batch=2, cycles=3000), arrivals, 200, 250, 30, 2)


@pytest.mark.parametrize("batch, timeout, quantum, service", sweep(7, [(batch, *each) for batch in (1, 3) for each in (
    (200, 55, 40), (255, 255, 40), (255, 20, 255), (3, 700, 20), (254, 20, 600))]))
def test_bound_is_kept_near_the_period_and_beyond(timeout, quantum, service, batch):
    """Alone, in bursts that fill the queue, and after a pause of many periods."""
    chance = random.Random(timeout * quantum + service + batch)
    arrivals = [40]
    for gap in (0, 0, 300, 5, 700, 1, 1, 1, 1500, 2 * PERIOD, 0, PERIOD - 1, PERIOD, PERIOD + 1):
        arrivals.append(arrivals[-1] + gap + chance.randrange(4))
    check(serve(arrivals, timeout, quantum, service, batch), arrivals, timeout, quantum, service, batch)


@pytest.mark.parametrize("pause", sweep(2, [PERIOD - 40, 5 * PERIOD, 2 * PERIOD - 40]))
def test_what_waited_while_inference_was_off_is_due_at_once(pause):
    """Requests that come in the pause are old to every degree, and each age is told from the others."""
    arrivals, timeout, quantum, service = [30 + pause * n // 4 for n in range(4)], 250, 10, 20
    back = 30 + pause
    done, counters = serve(arrivals, timeout, quantum, service, inference=lambda cycle: cycle >= back)
    assert len(done) == 4 and counters[0] == 4
    free = back + quantum + OVERHEAD
    for arrival, _, latency, error in done:
        if arrival + timeout <= free:    # in its turn
            free += service + OVERHEAD
        else:
            free = max(free, arrival + timeout + quantum + OVERHEAD) + service + OVERHEAD
        assert latency <= free - arrival
        assert error == (latency >= PERIOD)
