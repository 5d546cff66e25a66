"""Which format each tensor role of a layer has, and in which order its products add up."""

from dataclasses import dataclass, replace
from typing import Self

from hbfp.design import ACCUMULATES
from hbfp.fields import check_choice
from hbfp.format import HBFPFormat

#: ``block`` is the hardware's order, bit for bit; ``quick`` leaves the order of additions to the
#: platform's BLAS: same converted operands, other low bits, not reproducible across machines.
ORDERS = ("block", "quick")


@dataclass(frozen=True, kw_only=True)
class Formats:
    """Formats of a layer's three matrix products.

    Parameters
    ----------
    x, w, g : HBFPFormat
        Inputs, weights, gradients of the output; equal block lengths along K.
    order : str
        One of :data:`ORDERS`.
    accumulate : str
        ``fp32`` or ``aligned``, as of :func:`golden.matmul.matmul`; ``block`` order only.

    Raises
    ------
    ValueError
        If a choice is unknown or block lengths differ.
    """
    x: HBFPFormat
    w: HBFPFormat
    g: HBFPFormat
    order: str = "block"
    accumulate: str = "fp32"

    def __post_init__(self):
        check_choice("Order", self.order, ORDERS)
        check_choice("Accumulation", self.accumulate, ACCUMULATES)
        for role in ("x", "w", "g"):
            if not isinstance(getattr(self, role), HBFPFormat):
                raise TypeError(f"Format of {role} must be an HBFPFormat, not {getattr(self, role)!r}")
        if len({fmt.terms for fmt in (self.x, self.w, self.g)}) > 1:
            raise ValueError("Blocks of x, w and g must have equal terms along K, not "
                             f"{self.x.terms}, {self.w.terms} and {self.g.terms}")

    @classmethod
    def of(cls, fmt: "Formats | HBFPFormat | None", *, w: HBFPFormat | None = None, g: HBFPFormat | None = None,
           order: str = "block", accumulate: str = "fp32") -> "Formats":
        """From one format, or one per role; a :class:`Formats` passes through."""
        if isinstance(fmt, Formats):
            return fmt
        if fmt is None:
            fmt = HBFPFormat()
        return cls(x=fmt, w=w or fmt, g=g or fmt, order=order, accumulate=accumulate)

    def with_mantissa(self, mantissa: int) -> Self:
        """The same with another mantissa width in every role."""
        return replace(self, **{role: replace(getattr(self, role), mantissa=mantissa) for role in ("x", "w", "g")})

    @property
    def stochastic(self) -> bool:
        """Whether any role rounds stochastically and so needs a noise stream."""
        return any(fmt.rounding == "stochastic" for fmt in (self.x, self.w, self.g))

    @property
    def lanes(self) -> int:
        """Converter lanes of the noise stream: the largest divisor of a block's terms up to 32."""
        return max(lanes for lanes in range(1, 33) if self.x.terms % lanes == 0)


#: What stands for formats: one for all roles, one each, or None for the default.
FormatLike = Formats | HBFPFormat | None
