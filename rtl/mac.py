"""The arithmetic of a column of elements: products and their running sum, per kind of number."""

from amaranth import Cat, Signal

from .dot import Dot
from .fp32.arith import MulAdd, ProductAdd


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
    for n, (act, weight) in enumerate(zip(acts, weights, strict=True)):
        mac = (MulAdd(underflow="positive", multiplier=design.multiplier) if design.arithmetic == "fp32"
               else ProductAdd(underflow="positive"))
        m.submodules[f"{name}_{n}"] = mac
        m.d.comb += [mac.a.eq(act), mac.b.eq(weight), mac.c.eq(0 if psum is None else psum)]
        psum = mac.o
    return psum


_CHAINS = {"hbfp": _integer_chain, "int": _integer_chain, "fp32": _float_chain, "bf16": _float_chain}


def mac_chain(m, design, acts, weights, psum, shape, name):
    """Combinational ``psum + sum of act * weight``, in the order of the rows.

    Parameters
    ----------
    m : Module
        Where the logic goes.
    design : golden.spec.config.Design
    acts, weights : list of Value
        One per row, top first; activations recoded if the design says so.
    psum : Value or None
        Sum of the rows above; None if there is none.
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
