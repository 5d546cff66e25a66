# amaranth: UnusedElaboratable=no
"""FP32 units against SMT-LIB floating point, for all inputs."""

import pytest
from amaranth.lib.wiring import Component, In, Out

from golden.spec.floats import FP32, FloatFormat
from rtl.fp32.arith import Add
from rtl.fp32.convert import IntToFp32
from rtl.fp32.units import FP32_UNITS
from tests.cases import slow, sweep
from tests.formal.prove import proved

E4F3, E3F2 = FloatFormat(4, 3), FloatFormat(3, 2)

#: 754-2019 minimum and maximum from those of SMT-LIB, which leave zeros and NaN open.
PICK = ("(ite (or (fp.isNaN A) (fp.isNaN B)) (_ NaN 8 24) (ite (and (fp.isZero A) (fp.isZero B)) "
        "(ite (fp.is{} A) A B) (fp.{} A B)))")


def to_fp(fmt, bits):
    return f"((_ to_fp {fmt.exponent} {fmt.precision}) {bits})"


def bits(value, width):
    return f"#b{value:0{width}b}"


def definitions(fmt, operands, subnormals):
    """A, B, C as floats, flushed if the mode says so, O as the result."""
    sort = f"(_ FloatingPoint {fmt.exponent} {fmt.precision})"
    lines = [f"(define-fun O () {sort} {to_fp(fmt, 'o')})"]
    lines.append(f"(define-fun flush ((x {sort})) {sort} (ite (fp.isSubnormal x) (ite (fp.isNegative x) "
                 f"(_ -zero {fmt.exponent} {fmt.precision}) (_ +zero {fmt.exponent} {fmt.precision})) x))")
    for name in operands:
        value = to_fp(fmt, name)
        value = f"(flush {value})" if subnormals == "flush" else value
        lines.append(f"(define-fun {name.upper()} () {sort} {value})")
    return "\n".join(lines)


def law(fmt, term, subnormals):
    """The result is ``term``, signs of zeros included, and a NaN is the one NaN."""
    term = f"(flush {term})" if subnormals == "flush" else term
    return f"(and (= O {term}) (=> (fp.isNaN O) (= o {bits(fmt.nan, fmt.width)})))"


def check(name, fmt, term, operands, subnormals, seconds=300, **parameters):
    unit = FP32_UNITS[f"fp32.{name}"](fmt=fmt, subnormals=subnormals, **parameters)
    stem = f"{name}_e{fmt.exponent}f{fmt.fraction}_{subnormals}"
    return proved(unit, stem, law(fmt, term, subnormals), definitions(fmt, operands, subnormals), seconds,
                  "bitwuzla" if fmt.width in (16, 32) else "z3")


@pytest.mark.slow
@pytest.mark.parametrize("subnormals", ["gradual", "flush"])
def test_adder_is_ieee(subnormals):
    """All 2^64 pairs; a sum that falls below the normal numbers is exact, so flushing commutes."""
    assert check("add", FP32, "(fp.add RNE A B)", "ab", subnormals, 1800)


@pytest.mark.parametrize("subnormals", sweep(2, ["gradual", "flush"]))
@pytest.mark.parametrize("name, term, fmt", [
    pytest.param("add", "(fp.add RNE A B)", FloatFormat(5, 10), marks=pytest.mark.slow),
    pytest.param("sub", "(fp.sub RNE A B)", FloatFormat(5, 10), marks=pytest.mark.slow),
    ("min", PICK.format("Negative", "min"), FP32),
    ("max", PICK.format("Positive", "max"), FP32),
])
def test_pair_is_ieee(name, term, fmt, subnormals):
    assert check(name, fmt, term, "ab", subnormals)


@pytest.mark.parametrize("name, term", [("abs", "(fp.abs A)"), ("neg", "(fp.neg A)")])
@pytest.mark.parametrize("subnormals", ["gradual", "flush"])
def test_sign_is_ieee(name, term, subnormals):
    assert check(name, FP32, term, "a", subnormals)


@pytest.mark.parametrize("name, term, operands, fmt", [
    ("add", "(fp.add RNE A B)", "ab", E4F3),
    ("sub", "(fp.sub RNE A B)", "ab", E3F2),
    ("mul", "(fp.mul RNE A B)", "ab", E4F3),
    ("div", "(fp.div RNE A B)", "ab", E4F3),
    ("sqrt", "(fp.sqrt RNE A)", "a", E4F3),
    ("fma", "(fp.fma RNE A B C)", "abc", E3F2),
    pytest.param("fma", "(fp.fma RNE A B C)", "abc", E4F3, marks=pytest.mark.slow),
    pytest.param("sqrt", "(fp.sqrt RNE A)", "a", FloatFormat(5, 10), marks=pytest.mark.slow),
])
def test_small_format_is_ieee(name, term, operands, fmt):
    assert check(name, fmt, term, operands, "gradual")


def rounded_and_flushed(fmt, operation):
    """An operation whose result is rounded as if exponents had no end, and then zero if below the normal numbers.

    That is another number than a subnormal that is flushed: what is rounded up to the smallest normal one.
    """
    sort, wide = f"{fmt.exponent} {fmt.precision}", f"{fmt.exponent + 2} {fmt.precision}"
    values = {name: f"((_ to_fp {wide}) RNE {name.upper()})" for name in "abc"}
    least = f"((_ to_fp {wide}) RNE {to_fp(fmt, bits(1 << fmt.fraction, fmt.width))})"
    zero = f"(ite (fp.isNegative R) (_ -zero {sort}) (_ +zero {sort}))"
    return (f"(let ((R ({operation.format(**values)}))) "
            f"(ite (fp.lt (fp.abs R) {least}) {zero} ((_ to_fp {sort}) RNE R)))")


@pytest.mark.parametrize("name, operation, operands, fmt", [
    ("mul", "fp.mul RNE {a} {b}", "ab", E4F3),
    slow(("div", "fp.div RNE {a} {b}", "ab", E4F3)),
    slow(("mul", "fp.mul RNE {a} {b}", "ab", FloatFormat(4, 6))),
    slow(("fma", "fp.fma RNE {a} {b} {c}", "abc", E3F2)),
    slow(("fma", "fp.fma RNE {a} {b} {c}", "abc", E4F3)),
])
def test_small_format_is_flushed_behind_the_rounding(name, operation, operands, fmt):
    assert check(name, fmt, rounded_and_flushed(fmt, operation), operands, "flush", 900)


@pytest.mark.parametrize("fmt", sweep(2, [E3F2, E4F3]), ids=str)
def test_product_and_sum_are_rounded_each(fmt):
    product = rounded_and_flushed(fmt, "fp.mul RNE {a} {b}")
    assert check("mul_add", fmt, f"(fp.add RNE {product} C)", "abc", "flush", 900)


def test_flushed_subnormal_is_another_number():
    assert not check("mul", E4F3, "(fp.mul RNE A B)", "ab", "flush")


@pytest.mark.parametrize("subnormals", ["gradual", "flush"])
def test_compare_is_ieee(subnormals):
    terms = ("(fp.lt A B)", "(fp.eq A B)", "(fp.gt A B)", "(or (fp.isNaN A) (fp.isNaN B))")
    flags = " ".join(f"(= ((_ extract {n} {n}) o) (ite {term} #b1 #b0))" for n, term in enumerate(terms))
    relation = f"(and {flags})"
    lines = [line for line in definitions(FP32, "ab", subnormals).splitlines() if not line.startswith("(define-fun O")]
    assert proved(FP32_UNITS["fp32.compare"](subnormals=subnormals), f"compare_{subnormals}", relation,
                  "\n".join(lines))


def test_integer_is_ieee():
    assert proved(FP32_UNITS["fp32.from_int32"](), "from_int32", f"(= {to_fp(FP32, 'o')} ((_ to_fp 8 24) RNE a))")


@pytest.mark.parametrize("width, exponent", sweep(2, [
    (3, 6), (8, 8), (22, 12), (17, 10), (25, 11), (60, 10), (40, 18)]))
def test_scaled_integer_is_ieee(width, exponent):
    """All integers with all scales.

    The nearest float of the integer, its exponent field moved by the scale: Inf above the last normal field, +0
    below the first, for rounding does not depend on the scale and flushing is judged after it. NaN if invalid.
    """
    wide = exponent + 10
    lines = f"(declare-const r (_ BitVec 32))\n(assert (= {to_fp(FP32, 'r')} ((_ to_fp 8 24) RNE i)))"
    field = (f"(bvadd ((_ zero_extend {wide - 8}) ((_ extract 30 23) r)) "
             f"((_ sign_extend {wide - exponent}) exponent))")
    term = ("(ite (= invalid #b1) (= o #x7FC00000) "
            f"(ite (or (= r #x00000000) (bvslt {field} (_ bv1 {wide}))) (= o #x00000000) "
            f"(ite (bvsgt {field} (_ bv254 {wide})) (= o (concat ((_ extract 31 31) r) {bits(FP32.inf, 31)})) "
            f"(= o (concat ((_ extract 31 31) r) ((_ extract 7 0) {field}) ((_ extract 22 0) r))))))")
    assert proved(IntToFp32(width=width, exponent_width=exponent), f"int{width}_{exponent}", term, lines)


@pytest.mark.slow
def test_accumulating_adder_is_ieee():
    """All 2^64 pairs: operands below the normal numbers are zero; a zero, or a result there, is +0."""
    lines = definitions(FP32, "ab", "flush")
    total = "(fp.add RNE A B)"
    term = f"(ite (or (fp.isZero {total}) (fp.isSubnormal {total})) (_ +zero 8 24) {total})"
    relation = f"(and (= O {term}) (=> (fp.isNaN O) (= o #x7FC00000)))"
    assert proved(Add(subnormals="flush", underflow="positive"), "accumulating_add", relation, lines)


@pytest.mark.parametrize("rounding, mode", [("rne", "RNE"), ("truncate", "RTZ")])
def test_integer_result_is_ieee(rounding, mode):
    """In range the SMT-LIB conversion; out of range the nearest limit; NaN gives 0."""
    term = ("(ite (fp.isNaN A) (= o #x00000000) "
            f"(let ((r (fp.roundToIntegral {mode} A))) "
            "(ite (fp.geq r ((_ to_fp 8 24) #x4F000000)) (= o #x7FFFFFFF) "
            "(ite (fp.lt r ((_ to_fp 8 24) #xCF000000)) (= o #x80000000) "
            f"(= o ((_ fp.to_sbv 32) {mode} A))))))")
    lines = f"(define-fun A () (_ FloatingPoint 8 24) {to_fp(FP32, 'a')})"
    assert proved(FP32_UNITS["fp32.to_int32"](rounding=rounding), f"to_int32_{rounding}", term, lines)


def test_bf16_is_ieee():
    lines = f"(define-fun A () (_ FloatingPoint 8 24) {to_fp(FP32, 'a')})"
    term = "(and (= ((_ to_fp 8 8) o) ((_ to_fp 8 8) RNE A)) (=> (fp.isNaN A) (= o #x7FC0)))"
    assert proved(FP32_UNITS["fp32.to_bf16"](), "to_bf16", term, lines)


class Wrong(Component):
    """An adder whose result has its last bit cleared."""

    def __init__(self):
        super().__init__({"a": In(8), "b": In(8), "o": Out(8)})

    def elaborate(self, platform):
        from amaranth import Module
        m = Module()
        m.submodules.add = add = FP32_UNITS["fp32.add"](fmt=E4F3)
        m.d.comb += [add.a.eq(self.a), add.b.eq(self.b), self.o.eq(add.o & 0xFE)]
        return m


def test_planted_error_is_found():
    assert not proved(Wrong(), "wrong", law(E4F3, "(fp.add RNE A B)", "gradual"), definitions(E4F3, "ab", "gradual"),
                      solver="z3")
