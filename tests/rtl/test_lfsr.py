# amaranth: UnusedElaboratable=no
"""The converter's random words equal those of the golden model; docs/numerics.md, section 6."""

import pytest

from golden.noise import states
from rtl.lfsr import SPREAD, Xorshift32, lane_start

from .drive import Bench


def run(lane, actions):
    """Words seen by ``actions``: ``None`` holds, ``"step"`` steps, a number loads that seed."""
    dut, got = Xorshift32(lane), []

    async def play(ctx):
        for action in actions:
            ctx.set(dut.step, action == "step")
            ctx.set(dut.load, isinstance(action, int))
            ctx.set(dut.start, action if isinstance(action, int) else 0xFFFFFFFF)
            _, _, word = await ctx.tick().sample(dut.o)
            if action == "step":
                got.append(word)
    bench = Bench(dut)
    bench.process(play)
    bench.run()
    return got


@pytest.mark.parametrize("lane", [0, 1, 31, 255])
def test_words_from_reset_equal_golden(lane):
    assert run(lane, ["step"] * 40) == states(1, lane + 1, 40)[:, lane].tolist()


def test_published_sequence():
    spread = SPREAD ^ 1    # lane 0 then starts at 1
    assert run(0, [spread, *["step"] * 6]) == [270369, 67634689, 2647435461, 307599695, 2398689233, 745495504]


@pytest.mark.parametrize("lane, seed", [(0, 0), (0, SPREAD), (3, 77), (2, 3 * SPREAD & 0xFFFFFFFF), (0, 0xFFFFFFFF)])
def test_seed_restarts_the_lane(lane, seed):
    want = states(seed, lane + 1, 9)[:, lane].tolist()
    assert run(lane, ["step", "step", seed, *["step"] * 9])[2:] == want
    assert 0 not in want


def test_state_holds_between_steps():
    assert run(5, ["step", None, None, "step", None, "step"]) == run(5, ["step"] * 3)


def test_start_is_never_zero():
    assert lane_start(SPREAD, 0) == 1
