"""The arithmetic of a column of elements: products and their running sum, per kind of number."""

from amaranth import Cat, Signal

from .dot import Dot
from .fp32.arith import MulAdd, ProductAdd
from .fp32.fma import Fma

#: Multiply-add of each kind of float.
UNITS = {"fp32": MulAdd, "fma": Fma, "bf16": ProductAdd}


def lead(design):
    """Cycles in which an element forms its product, before it needs the sum from above."""
    return len(UNITS[design.arithmetic].leading(design.pipeline)) if design.arithmetic in UNITS else 0


def step(design):
    """Cycles from the sum that enters an element, or a group of them, to the one that leaves."""
    return 1 + design.pipeline - lead(design) if design.arithmetic in UNITS else 1


def sum_registers(design):
    """Registers inside an adder that accumulates: as many as a pipelined element has in its sum, one at least."""
    return max(step(design) - 1, 1) if design.pipeline and design.arithmetic in UNITS else design.pipeline


def sum_rules(design):
    """Keywords of every sum: IEEE 754 for ``fma``; else subnormals are zero, and +0."""
    return {"subnormals": "gradual"} if design.arithmetic == "fma" else {
        "subnormals": "flush", "underflow": "positive"}


def _integer_chain(m, design, acts, weights, psum, shape, name):
    if design.recoded:
        m.submodules[name] = dot = Dot(design.lane_width, len(acts), psum.shape(), shape)
        m.d.comb += [dot.code.eq(Cat(acts)), dot.weight.eq(Cat(weights)), dot.north.eq(psum)]
        return dot.south
    total = Signal(shape, name=f"{name}_total")
    products = [act * weight for act, weight in zip(acts, weights, strict=True)]
    m.d.comb += total.eq(sum(products, 0 if psum is None else psum))
    return total


def _float_chain(m, design, acts, weights, psum, shape, name):
    multiplier = {} if design.arithmetic == "bf16" else {"multiplier": design.multiplier}
    for n, (act, weight) in enumerate(zip(acts, weights, strict=True)):
        m.submodules[f"{name}_{n}"] = mac = UNITS[design.arithmetic](
            pipeline=design.pipeline, late=True, enable=False, **multiplier, **sum_rules(design))
        m.d.comb += [mac.a.eq(act), mac.b.eq(weight), mac.c.eq(0 if psum is None else psum)]
        psum = mac.o
    return psum


_CHAINS = {"hbfp": _integer_chain, "int": _integer_chain} | dict.fromkeys(UNITS, _float_chain)


def mac_chain(m, design, acts, weights, psum, shape, name):
    """``psum + sum of act * weight``, in the order of the rows; without a clock, but in pipelined floats.

    Parameters
    ----------
    m : Module
        Where the logic goes.
    design : golden.spec.config.Design
    acts, weights : list of Value
        One per row, top first; activations recoded if the design says so.
    psum : Value or None
        Sum of the rows above, :func:`lead` cycles late; None if there is none.
    shape : Shape
        Of the result.
    name : str
        Prefix of names, unique in ``m``.

    Returns
    -------
    Signal
        The sum: exact if integer; for floats each product and each sum is rounded as its unit says.
    """
    return _CHAINS[design.arithmetic](m, design, acts, weights, psum, shape, name)
