# amaranth: UnusedElaboratable=no
"""Small laws of the core's parts, for all inputs: alignment, dot products, conversion of an element."""

import pytest
from amaranth import Module, Signal, signed
from amaranth.lib.wiring import Component, In, Out

from hbfp.design import MULTIPLIERS, Design
from hbfp.format import HBFPFormat
from rtl.convert.encode_lane import EncodeLane
from rtl.fixed.align import AlignAdd
from rtl.fixed.booth import BoothRecoder, Correction
from rtl.number.kinds import number_of
from tests.cases import sweep
from tests.formal.prove import proved


def number(value, width):
    return f"(_ bv{value % 2 ** width} {width})"


def signed_to(name, bits, width):
    return f"((_ sign_extend {width - bits}) {name})"


def unsigned_to(name, bits, width):
    return f"((_ zero_extend {width - bits}) {name})"


def let(values, body):
    """Nested definitions: ``values`` is a list of (name, term), each seeing those before it."""
    for name, term in reversed(values):
        body = f"(let (({name} {term})) {body})"
    return body


# --- Alignment -----------------------------------------------------------------------------------


class Align(Component):
    """An :class:`AlignAdd` with a plain port for each field of the accumulator."""

    def __init__(self, sum_width, width, guard, exponent_width):
        self.sizes = sum_width, width, guard, exponent_width
        super().__init__({"a": In(signed(width)), "ae": In(signed(exponent_width)), "s": In(signed(sum_width)),
                          "se": In(signed(exponent_width)), "o": Out(signed(width)), "oe": Out(signed(exponent_width))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.part = part = AlignAdd(*self.sizes)
        m.d.comb += [part.acc.sum[0].eq(self.a), part.acc.exponent.eq(self.ae), part.sum[0].eq(self.s),
                     part.exponent.eq(self.se), self.o.eq(part.o.sum[0]), self.oe.eq(part.o.exponent)]
        return m


@pytest.mark.parametrize("sum_width, width, guard, exponent_width", sweep(2, [
    (4, 6, 0, 3), (6, 10, 1, 5), (5, 9, 2, 4)]))
def test_alignment_errs_by_half_a_step(sum_width, width, guard, exponent_width):
    """|o * 2^d - (exact sum)| <= 2^d / 2, ties up, at the larger exponent; exact where both are equal.

    Assumed: there is room in the accumulator for the block sum, as growth guarantees.
    """
    span = 2 ** exponent_width - 1
    wide = width + span + 4

    def n(value):
        return number(value, wide)
    room = 2 ** (width - 1) - 1 - ((2 ** (sum_width - 1)) << guard)
    acc, total = signed_to("a", width, wide), f"(bvshl {signed_to('s', sum_width, wide)} {n(guard)})"
    exponents = [(name, signed_to(name, exponent_width, wide)) for name in ("ae", "se", "oe")]
    (_, ae), (_, se), (_, oe) = exponents
    law = let([
        ("acc", acc), ("total", total), ("up", f"(bvslt {ae} {se})"),
        ("d", f"(ite up (bvsub {se} {ae}) (bvsub {ae} {se}))"),
        ("exact", "(ite up (bvadd acc (bvshl total d)) (bvadd (bvshl acc d) total))"),
        ("twice", f"(bvshl (bvsub (bvshl {signed_to('o', width, wide)} d) exact) {n(1)})"),
        ("step", f"(bvshl {n(1)} d)"),
    ], f"(=> (and (bvsle acc {n(room)}) (bvsge acc {n(-room)})) (and (= {oe} (ite up {se} {ae})) "
       f"(bvsle twice step) (bvsgt twice (bvneg step)) (=> (= d {n(0)}) (= twice {n(0)}))))")
    part = Align(sum_width, width, guard, exponent_width)
    assert proved(part, f"align_{sum_width}_{width}_{guard}_{exponent_width}", law)


# --- Dot products --------------------------------------------------------------------------------


class Column(Component):
    """One column of a group with the correction that its activations need, if recoded."""

    def __init__(self, mantissa, terms, multiplier):
        self.design = Design(format=HBFPFormat(mantissa=mantissa, block=(1, terms)), rows=terms, cols=1,
                             group=(terms, 1), multiplier=multiplier)
        self.terms = terms
        lane = signed(mantissa)
        super().__init__({f"{kind}{n}": In(lane) for kind in "aw" for n in range(terms)}
                         | {"o": Out(signed(self.design.format.sum_width(terms)))})

    def elaborate(self, platform):
        m = Module()
        width = self.design.lane_width
        acts = [getattr(self, f"a{n}") for n in range(self.terms)]
        weights = [getattr(self, f"w{n}") for n in range(self.terms)]
        start = None
        if self.design.recoded:
            m.submodules.correction = correction = Correction(width, self.terms)
            codes = []
            for n, act in enumerate(acts):
                m.submodules[f"recode{n}"] = recode = BoothRecoder(width)
                m.d.comb += recode.i.eq(act)
                codes.append(recode.o)
            for n, code in enumerate(codes):
                m.d.comb += correction.code.as_value().word_select(n, len(code)).eq(code)
            acts, start = codes, Signal.like(correction.o)
            m.d.comb += start.eq(correction.o)
        m.d.comb += self.o.eq(number_of(self.design).column(m, acts, weights, start, self.o.shape(), "c"))
        return m


@pytest.mark.parametrize("mantissa, terms, multiplier", sweep(3, [
    (*sizes, multiplier) for sizes in ((2, 4), (3, 2), (4, 1), (6, 1)) for multiplier in MULTIPLIERS]))
def test_group_is_the_plain_dot_product(mantissa, terms, multiplier):
    """For all mantissas of the format: -2^m is none."""
    wide = 2 * mantissa + terms.bit_length() + 2
    part = Column(mantissa, terms, multiplier)
    valid = " ".join(f"(distinct a{n} {number(-2 ** (mantissa - 1), mantissa)}) "
                     f"(distinct w{n} {number(-2 ** (mantissa - 1), mantissa)})" for n in range(terms))
    total = number(0, wide)
    for n in range(terms):
        product = f"(bvmul {signed_to(f'a{n}', mantissa, wide)} {signed_to(f'w{n}', mantissa, wide)})"
        total = f"(bvadd {total} {product})"
    law = f"(=> (and {valid}) (= {signed_to('o', part.design.format.sum_width(terms), wide)} {total}))"
    assert proved(part, f"group_{multiplier}_{mantissa}_{terms}", law)


# --- Conversion of one element -------------------------------------------------------------------


def definition(fmt):
    """docs/numerics.md, section 2, steps 2 to 5, as a term for ``o``: 64 bits wide."""
    wide, m = 64, fmt.magnitude

    def n(value):
        return number(value, wide)
    field = unsigned_to("((_ extract 30 23) i)", 8, wide)
    fraction = unsigned_to("((_ extract 22 0) i)", 23, wide)
    gradual = fmt.subnormals == "gradual"
    values = [
        ("f", field), ("zero", f"(= f {n(0)})"),
        ("sig", f"(ite zero {'frac' if gradual else n(0)} (bvor frac {n(1 << 23)}))"),
        ("weight", f"(ite zero {n(1)} f)"),
        ("shift", f"(bvadd (bvsub {unsigned_to('top', 8, wide)} weight) {n(24 - m)})"),
        ("s", f"(ite (bvslt shift {n(0)}) {n(0)} (ite (bvsgt shift {n(60)}) {n(60)} shift))"),
        ("whole", "(bvlshr sig s)"), ("rest", "(bvsub sig (bvshl whole s))"),
        ("half", f"(bvlshr (bvshl {n(1)} s) {n(1)})"),
    ]
    match fmt.rounding:
        case "rne":
            up = (f"(and (distinct s {n(0)}) (or (bvugt rest half) (and (= rest half) "
                  f"(= (bvand whole {n(1)}) {n(1)}))))")
            rounded = f"(ite {up} (bvadd whole {n(1)}) whole)"
        case "truncate":
            rounded = "whole"
        case "stochastic":    # keep R bits below the cut, add the noise, floor
            r = fmt.noise_bits
            kept = (f"(ite (bvugt s {n(r)}) (bvlshr sig (bvsub s {n(r)})) (bvshl sig (bvsub {n(r)} s)))")
            rounded = f"(bvlshr (bvadd {kept} {unsigned_to('noise', r, wide)}) {n(r)})"
    values += [("rounded", rounded), ("kept", f"(ite (bvugt rounded {n(fmt.limit)}) {n(fmt.limit)} rounded)"),
               ("value", "(ite (= ((_ extract 31 31) i) #b1) (bvneg kept) kept)")]
    return let([("frac", fraction), *values], f"(= o ((_ extract {fmt.mantissa - 1} 0) value))")


def least(fmt):
    """Smallest exponent field that the lane's shifter reaches, as a term: what is below must come out as zero."""
    looked_at = {"rne": 1, "truncate": 0, "stochastic": fmt.noise_bits}[fmt.rounding]
    reach, low = 2 ** (fmt.magnitude + looked_at - 1).bit_length() - 1, int(fmt.subnormals == "flush")
    return f"(ite (bvugt top {number(reach + low, 8)}) (bvsub top {number(reach, 8)}) {number(low, 8)})"


LANES = [{"mantissa": 4}, {"mantissa": 2}, {"mantissa": 8}, {"mantissa": 16}, {"mantissa": 4, "rounding": "truncate"},
         {"mantissa": 4, "subnormals": "gradual"}, {"mantissa": 4, "exponent": 5},
         {"mantissa": 6, "exponent": 7, "subnormals": "gradual"},
         {"mantissa": 4, "rounding": "stochastic", "noise_bits": 3},
         {"mantissa": 4, "rounding": "stochastic", "noise_bits": 8, "exponent": 5}]


@pytest.mark.parametrize("options", sweep(2, LANES), ids=str)
def test_lane_is_its_definition(options):
    """For every FP32 of a finite block and every shared exponent that the block can have."""
    fmt = HBFPFormat(**options)
    low, high = (max(0, min(254, edge + 126)) for edge in fmt.exponent_range)
    field = "((_ extract 30 23) i)"
    # E is the largest field of the block, clamped: no element lies above it unless it was clamped down.
    possible = (f"(and (bvule {field} {number(254, 8)}) (bvuge top {number(low, 8)}) (bvule top {number(high, 8)}) "
                f"(or (bvule {field} top) (= top {number(high, 8)})) (= least {least(fmt)}))")
    name = "_".join(str(v) for v in options.values())
    assert proved(EncodeLane(fmt), f"lane_{name}", f"(=> {possible} {definition(fmt)})")
