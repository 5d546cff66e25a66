import pytest
from amaranth import Module, Signal
from amaranth.sim import Simulator

from golden.spec.tables import LOG2E
from rtl.fp32.constant import multiply_constant, signed_digits, terms


@pytest.mark.parametrize("constant", [1, 2, 3, 5, 7, 11, 45, 85, 255, 683, 1000, LOG2E])
def test_digits_and_terms_make_the_constant(constant):
    assert sum(digit << position for position, digit in signed_digits(constant)) == constant
    assert sum(sign * factor << shift for shift, sign, factor in terms(constant)) == constant


def products(width, constant, values):
    m, x, got = Module(), Signal(width), []
    product = multiply_constant(m, x, constant, "p")

    async def bench(ctx):
        for value in values:
            ctx.set(x, value)
            await ctx.delay(1e-9)
            got.append(ctx.get(product))

    sim = Simulator(m)
    sim.add_testbench(bench)
    sim.run()
    return got


def test_every_small_product():
    for constant in range(1, 130):
        assert products(4, constant, range(16)) == [constant * x for x in range(16)], constant


def test_extremes_of_a_wide_product():
    values = [0, 1, 2 ** 36 - 1, 2 ** 35, 0x555555555, 0xAAAAAAAAA]
    assert products(36, LOG2E, values) == [LOG2E * x for x in values]
