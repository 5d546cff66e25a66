# amaranth: UnusedElaboratable=no
"""Laws of the converter of FP32 to blocks, for all inputs and from any state; the page: docs/numerics.md, section 2.

A block is four elements, one beat. What a law says of an element is about exact numbers: its significand, and the
mantissa times the block's step, both in units of the significand's last bit.
"""

from itertools import permutations

import pytest
from z3 import UGE, And, BitVecVal, Extract, If, Implies, Not, Or

from hbfp.format import HBFPFormat
from rtl.convert.encode import Encode
from tests.cases import sweep
from tests.formal.prove import Laws, Step
from tests.formal.views import number, part, signed

LANES = 4


class Exact:
    """Exact numbers of a law: their ``bits``, and ``far``, beyond which below the largest an element is zero."""

    def __init__(self, fmt):
        self.far = fmt.magnitude + (fmt.noise_bits if fmt.rounding == "stochastic" else 0)
        # The largest mantissa times the largest step, twice, or the order of a number, each with a sign.
        self.bits = max(24 + self.far + 3, 33)

    def __call__(self, value):
        return BitVecVal(value, self.bits)

    def of(self, bits):
        """Those that unsigned bits are."""
        return number(bits, self.bits)

    def signed(self, bits):
        """Those that signed bits are."""
        return signed(bits, self.bits)


class Element:
    """An FP32 number of a block: ``field``; ``weight`` and ``significand``, zero if it is flushed; ``order``."""

    def __init__(self, bits, fmt):
        wide = Exact(fmt)
        self.negative, field = Extract(31, 31, bits) == 1, Extract(30, 23, bits)
        tiny, fraction = field == 0, wide.of(Extract(22, 0, bits))
        self.field = wide.of(field)
        self.weight = If(tiny, wide(1), self.field)
        low = fraction if fmt.subnormals == "gradual" else wide(0)
        self.significand = If(tiny, low, fraction | wide(1 << 23))
        size = wide.of(Extract(30, 0, bits))
        if fmt.subnormals == "flush":
            size = If(tiny, wide(0), size)
        #: A number that is in the order of the values.
        self.order = If(self.negative, -size, size)


class Block:
    """What the port gives: ``mantissas``, their ``sizes``, ``top``, which is E + 126, and ``invalid``."""

    def __init__(self, payload, fmt):
        wide = Exact(fmt)
        self.mantissas = [wide.signed(part(payload, fmt.mantissa, n)) for n in range(LANES)]
        self.sizes = [If(each < 0, -each, each) for each in self.mantissas]
        end = LANES * fmt.mantissa
        self.top = wide.signed(Extract(end + fmt.exponent - 1, end, payload)) + 126
        self.invalid = Extract(end + fmt.exponent, end + fmt.exponent, payload) == 1


def near_law(element, mantissa, size, top, magnitude, fmt):
    """The mantissa of a finite element: the nearest, or one of the two beside it, and the largest from there on."""
    wide = Exact(fmt)
    distance = top - element.weight
    shift = distance + 24 - magnitude
    limit, step = (wide(1) << magnitude) - 1, wide(1) << shift
    error = (size << shift) - element.significand
    match fmt.rounding:
        case "rne":
            close = And(2 * error <= step, 2 * error >= -step,
                        Implies(Or(2 * error == step, 2 * error == -step), size & 1 == 0))    # ties to even
        case "truncate":
            close = And(error <= 0, error > -step)
        case "stochastic":
            close = And(error < step, error > -step)
    full = element.significand >= limit << shift
    signed = Or(size == 0, element.negative == (mantissa < 0))
    return And(size <= limit, signed, If(distance < -1, size == limit, If(
        distance > wide.far, size == 0, If(full, size == limit, close))))


def laws_of(step, fmt, narrow=0):
    """What the page promises of a beat that is taken; ``narrow``: mantissa bits of blocks that are not wide.

    Order is that of one block, under stochastic rounding for elements with the same noise. What was converted comes
    out as it was when it is converted again: the output's own values are the next input.
    """
    now, then, wide = step.now, step.then, Exact(fmt)
    low, high = (max(0, min(254, edge + 126)) for edge in fmt.exponent_range)
    elements = [Element(Extract(32 * n + 31, 32 * n, now.i__payload), fmt) for n in range(LANES)]
    block, before = Block(then.o__payload, fmt), Block(now.o__payload, fmt)
    magnitude = wide(fmt.magnitude)
    if narrow:
        magnitude = If(Extract(32 * LANES, 32 * LANES, now.i__payload) == 1, magnitude, wide(narrow - 1))
    moves = Or(Not(now.o__valid), now.o__ready)
    taken = And(moves, now.i__valid)
    bad = Or(*(element.field == 255 for element in elements))
    finite = And(taken, Not(bad))
    laws = {
        "a beat goes through": And(now.i__ready == moves, Implies(moves, then.o__valid == now.i__valid)),
        "what is offered stays": Implies(Not(moves), And(then.o__valid, then.o__payload == now.o__payload)),
        "Inf and NaN": Implies(taken, And(block.invalid == bad, Implies(bad, And(*(
            each == 0 for each in block.mantissas))))),
        # The largest field of the block, and no other, but where it has no room.
        "exponent": Implies(finite, And(
            block.top >= low, block.top <= high,
            *(Or(block.top >= element.field, block.top == high) for element in elements),
            Or(block.top == low, *(Or(block.top == element.field, And(block.top == high, element.field >= high))
                                   for element in elements)))),
    }
    for n, element in enumerate(elements):
        laws[f"mantissa {n}"] = Implies(finite, near_law(
            element, block.mantissas[n], block.sizes[n], block.top, magnitude, fmt))
    for one, other in permutations(range(LANES), 2):
        same = True
        if fmt.rounding == "stochastic":
            same = vars(now)[f"lane{one}.noise"] == vars(now)[f"lane{other}.noise"]
        laws[f"order of {one} and {other}"] = Implies(
            And(finite, same, elements[one].order <= elements[other].order),
            block.mantissas[one] <= block.mantissas[other])
    always = {}
    if not narrow:    # whether a block is wide is not told at the output
        always["normal"] = Implies(And(now.o__valid, Not(before.invalid)), And(
            before.top >= low, before.top <= high,
            Or(before.top == low, *(UGE(size, wide(1 << fmt.magnitude - 1)) for size in before.sizes)),
            *(size <= fmt.limit for size in before.sizes),
            # None is a number below the normal ones, which an input of zero stands for.
            *(Or(fmt.subnormals == "gradual", size == 0, before.top >= fmt.magnitude,
                 size << before.top >= wide(1 << fmt.magnitude)) for size in before.sizes)))
        again = And(*(_equal(element, mantissa, size, before.top, fmt) for element, mantissa, size in zip(
            elements, before.mantissas, before.sizes, strict=True)))
        laws["converted again"] = Implies(
            And(now.o__valid, Not(before.invalid), taken, again), then.o__payload == now.o__payload)
    return Laws(laws, always, kept=("o__payload", *(f"mantissa{n}" for n in range(LANES))), alone=True)


def _equal(element, mantissa, size, top, fmt):
    """Whether an element has the value of a mantissa of a block."""
    shift = top - element.weight + 24 - fmt.magnitude
    return And(Or(size == 0, element.negative == (mantissa < 0)), If(
        size == 0, element.significand == 0, And(shift >= 0, shift < 24, size << shift == element.significand)))


#: Every width with the usual rounding, then with the others; then narrow exponents, and subnormals that count.
CASES = [*({"mantissa": bits, "rounding": rounding} for rounding in ("rne", "truncate", "stochastic")
           for bits in range(2, 15 if rounding == "stochastic" else 17)),
         *({"mantissa": bits, "rounding": rounding, "subnormals": "gradual", "exponent": exponent}
           for bits, exponent in ((2, 10), (5, 8), (8, 5), (16, 10)) for rounding in ("rne", "truncate", "stochastic")),
         *({"mantissa": bits, "exponent": exponent} for bits, exponent in ((4, 5), (4, 8), (8, 7), (16, 5)))]


@pytest.mark.parametrize("options", sweep(len(CASES), CASES), ids=lambda options: "-".join(map(str, options.values())))
def test_block_is_near(options):
    fmt = HBFPFormat(**options)
    step = Step.of(Encode(fmt, LANES))
    assert step.holds(laws_of(step, fmt), 600)


@pytest.mark.slow
@pytest.mark.parametrize("narrow, mantissa", [(4, 7), (8, 15), (9, 16)])
@pytest.mark.parametrize("rounding", ["rne", "truncate", "stochastic"])
def test_block_of_two_widths_is_near(narrow, mantissa, rounding):
    fmt = HBFPFormat(mantissa=mantissa, rounding=rounding)
    step = Step.of(Encode(fmt, LANES, narrow=narrow))
    assert step.holds(laws_of(step, fmt, narrow), 600)


@pytest.mark.slow
@pytest.mark.parametrize("made, told, laws", [
    # A step is lost; an exponent is held to fewer bits; what lies below the normal numbers counts.
    ({"rounding": "truncate"}, {}, {f"mantissa {n}" for n in range(LANES)}),
    ({"exponent": 9, "subnormals": "gradual"}, {"exponent": 9}, {f"mantissa {n}" for n in range(LANES)})])
def test_other_rules_are_seen(made, told, laws):
    step = Step.of(Encode(HBFPFormat(mantissa=3, **made), LANES))
    assert laws <= set(step.broken(laws_of(step, HBFPFormat(mantissa=3, **told)), 600))
