# amaranth: UnusedElaboratable=no
"""The converter's random words equal those of the golden model; docs/numerics.md, section 6."""

import pytest
from amaranth import Cat, Module, Signal
from amaranth.sim import Simulator

from golden.noise import mix, states
from rtl.convert.noise import Xorshift32, clears, lane_offset

from ..drive import Bench


def run(lane, actions):
    """Words seen by ``actions``: ``None`` holds, ``"step"`` steps, a number loads it as a mixed seed."""
    dut, got = Xorshift32(lane), []

    async def play(ctx):
        for action in actions:
            ctx.set(dut.step, action == "step")
            ctx.set(dut.load, isinstance(action, int))
            ctx.set(dut.seed, action if isinstance(action, int) else 0xFFFFFFFF)
            ctx.set(dut.clear, action == lane_offset(lane))
            _, _, word = await ctx.tick().sample(dut.o)
            if action == "step":
                got.append(word)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return got


@pytest.mark.parametrize("lane", [*range(51), 255])
def test_words_from_reset_equal_golden(lane):
    assert run(lane, ["step"] * 20) == states(1, lane + 1, 20)[:, lane].tolist()


@pytest.mark.parametrize("lane, seed", [(0, 0), (1, 1), (3, 77), (46, 0xFFFFFFFF), (47, 5)])
def test_mixed_seed_restarts_the_lane(lane, seed):
    want = states(seed, lane + 1, 9)[:, lane].tolist()
    assert run(lane, ["step", "step", mix(seed), *["step"] * 9])[2:] == want


@pytest.mark.parametrize("lane", [0, 2, 48])
def test_start_is_never_zero(lane):
    """The seed that would clear the state leaves 1 there."""
    neighbour = lane_offset(lane) ^ 1    # its start is 1, too
    cleared = run(lane, [lane_offset(lane), *["step"] * 3])
    assert 0 not in cleared
    assert cleared == run(lane, [neighbour, *["step"] * 3])


def test_seed_that_clears_a_lane():
    """The shared comparison names the one lane, and no lane for a seed that differs in one bit."""
    m, lanes, seed, hit = Module(), 50, Signal(32), Signal(50)
    m.d.comb += hit.eq(Cat(clears(m, seed, lanes)))
    bad = [lane_offset(lane) for lane in range(lanes)]
    seeds = [(one, 1 << lane) for lane, one in enumerate(bad)]
    seeds += [(one ^ 1 << bit, 0) for one in bad for bit in range(32)]

    async def play(ctx):
        for value, want in seeds:
            ctx.set(seed, value)
            assert ctx.get(hit) == want, hex(value)
    simulator = Simulator(m)
    simulator.add_testbench(play)
    simulator.run()


def test_state_holds_between_steps():
    assert run(5, ["step", None, None, "step", None, "step"]) == run(5, ["step"] * 3)

