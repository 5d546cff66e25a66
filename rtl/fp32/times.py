"""Products of whole numbers as units that are mapped by themselves."""

from dataclasses import dataclass

from amaranth import Module, Shape, Signal
from amaranth.lib.wiring import In, Out

from ..lib.component import Component
from ..lib.names import parameter
from .multiply import multiply_digits


class Times(Component):
    """``o`` is ``a * b`` without its lowest bits. Combinational.

    Area reports map it alone: with the tables in front of it mapping takes Yosys hours.

    Parameters
    ----------
    a, b : Shape
        Shapes of the factors.
    low : int
        Bits that are left out.
    multiplier : str
        One of :data:`~rtl.fp32.multiply.MULTIPLIERS`.
    """
    kind, apart = "times", True

    @dataclass(frozen=True)
    class Parameters:
        a: Shape = parameter("")
        b: Shape = parameter("x")
        low: int = parameter("d", 0)
        multiplier: str = parameter("", "plain", rare=True)

    @staticmethod
    def ports(params):
        a, b = params.a, params.b
        return {"a": In(a), "b": In(b), "o": Out(Shape(a.width + b.width - params.low, a.signed or b.signed))}

    def body(self, platform):
        m, params = Module(), self.params
        product = Signal(Shape(params.a.width + params.b.width, params.a.signed or params.b.signed))
        m.d.comb += [product.eq(multiply_digits(m, self.a, self.b) if params.multiplier == "recoded" else
                                self.a * self.b), self.o.eq(product[params.low:])]
        return m


def times(m, a, b, name, low=0, multiplier="plain"):
    """A product of two values by a submodule ``name``, without its ``low`` lowest bits."""
    m.submodules[name] = unit = Times(a.shape(), b.shape(), low, multiplier)
    m.d.comb += [unit.a.eq(a), unit.b.eq(b)]
    return unit.o
