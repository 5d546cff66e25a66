"""Numbers that HBFP is compared with, as data: small floats and integers, what scales them, and their names.

Elements and block scales of ``mx...`` are those of the OCP Microscaling Formats (MX) Specification, version 1.0
(September 2023), sections 5 and 6; FP8 those of the OCP 8-bit Floating Point Specification (OFP8), version 1.0; NVFP4
that of "Pretraining Large Language Models with NVFP4" (arXiv 2509.25149), appendix C; FP16 is IEEE 754's binary16 and
BF16 the upper half of its binary32.
"""

import math
from dataclasses import dataclass, replace

#: What one scale stands for: a block of elements along the dimension that is summed, all elements of one sum, all of a
#: tensor, or a block on top of a tensor.
SCOPES = ("none", "block", "row", "tensor", "block and tensor")
#: Scopes of which the scale of a tensor may be fixed.
OF_TENSOR = ("tensor", "block and tensor")


@dataclass(frozen=True, kw_only=True)
class Element:
    """A float or an integer of few bits.

    Parameters
    ----------
    bits : int
        Width of a code, sign included.
    exponent : int
        Bits of the exponent, whose bias is 2^(exponent - 1) - 1; 0: an integer in two's complement.
    fraction : int
        Bits of the fraction; of an integer those behind the point.
    largest : float
        The largest finite number; what is beyond it becomes that.
    infinite : bool
        Whether what rounds to more than the largest number becomes an infinity in its place.
    """
    bits: int
    exponent: int
    fraction: int
    largest: float
    infinite: bool = False

    def __str__(self) -> str:
        if self.exponent:
            return f"float, E{self.exponent}M{self.fraction}, to {self.largest:g}"
        return f"integer of {self.bits} bits" + (f", {self.fraction} behind the point" if self.fraction else "")

    @property
    def emin(self) -> int:
        """Power of two of the smallest normal number; of an integer that of its fraction's weight 1."""
        return 2 - 2 ** (self.exponent - 1) if self.exponent else 0

    @property
    def emax(self) -> int:
        """Power of two of the largest number: floor(log2(largest))."""
        return len(f"{int(self.largest):b}") - 1

    @property
    def magnitudes(self) -> tuple[float, ...]:
        """Every finite number from 0 on, by its code."""
        found = [self._magnitude(code) for code in range(2 ** (self.bits - 1))]
        return tuple(value for value in found if value <= self.largest)

    def _magnitude(self, code):
        upper, lower = divmod(code, 2 ** self.fraction)
        if not self.exponent:
            return code * 2.0 ** -self.fraction
        if not upper:
            return lower * 2.0 ** (self.emin - self.fraction)
        return (1 + lower * 2.0 ** -self.fraction) * 2.0 ** (upper - 1 + self.emin)


E4M3 = Element(bits=8, exponent=4, fraction=3, largest=448.0)
E5M2 = Element(bits=8, exponent=5, fraction=2, largest=57344.0)
E2M3 = Element(bits=6, exponent=2, fraction=3, largest=7.5)
E3M2 = Element(bits=6, exponent=3, fraction=2, largest=28.0)
E2M1 = Element(bits=4, exponent=2, fraction=1, largest=6.0)
#: Of MXINT8: 6 bits behind the point. The code of -2 is left out, as the specification allows, so that both signs have
#: the same numbers.
INT8_MX = Element(bits=8, exponent=0, fraction=6, largest=127 / 64)
INT8 = Element(bits=8, exponent=0, fraction=0, largest=127.0)
FP16 = Element(bits=16, exponent=5, fraction=10, largest=65504.0, infinite=True)
BF16 = Element(bits=16, exponent=8, fraction=7, largest=255 * 2.0 ** 120, infinite=True)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number format without HBFP's law: elements, and what scales them.

    Parameters
    ----------
    name : str
    element : Element
    scope : str
        One of :data:`SCOPES`. A scale of a block is a power of two, 2^-127 to 2^127; that of ``block and tensor`` is an
        E4M3 over the tensor's; all others are FP32.
    block : int
        Elements that share a scale, where the scope has blocks.
    source : str
        Where it is written.
    hardware : str
        What of it this project has hardware of.
    top : float, optional
        The magnitude up to which the scale of a tensor reaches, whatever the tensor has: what is beyond it saturates.
        None: the tensor's own largest. :func:`golden.nn.calibrate` chooses one for each layer.
    """
    name: str
    element: Element
    scope: str = "none"
    block: int = 0
    source: str
    hardware: str = ""
    top: float | None = None

    #: What formats of HBFP have beside it.
    rounding = "rne"

    @property
    def scale(self) -> str:
        """What scales the elements, in words."""
        return {"none": "none", "block": f"{self.block} elements: a power of two",
                "row": "all of one sum: FP32", "tensor": "a tensor: FP32",
                "block and tensor": f"{self.block} elements: E4M3, and a tensor: FP32"}[self.scope]

    @property
    def bits(self) -> float:
        """Bits a value with its share of a block's scale; scales of rows and tensors are left out."""
        return self.element.bits + (8 / self.block if self.block else 0)

    def __str__(self) -> str:
        return self.name if self.top is None else f"{self.name} to {self.top:.6g}"

    def up_to(self, top: float | None) -> "Number":
        """The same with a scale of tensors that reaches up to ``top``; ValueError if it has none, or none that does."""
        if top is not None and self.scope not in OF_TENSOR:
            raise ValueError(f"A scale can be fixed of a number that has one for a tensor, not of {self.name}")
        if top is not None and not 0 <= top < math.inf:
            raise ValueError(f"A scale must reach to 0 or a finite magnitude, not {top}")
        return replace(self, top=top)


_MX, _OFP8, _NV = "OCP MX 1.0", "OCP OFP8 1.0", "arXiv 2509.25149, appendix C"
_EVERY = (
    *(Number(name=name, element=element, scope="block", block=32, source=_MX) for name, element in (
        ("mxfp8-e4m3", E4M3), ("mxfp8-e5m2", E5M2), ("mxfp6-e2m3", E2M3), ("mxfp6-e3m2", E3M2), ("mxfp4", E2M1),
        ("mxint8", INT8_MX))),
    Number(name="nvfp4", element=E2M1, scope="block and tensor", block=16, source=_NV),
    Number(name="fp8-e4m3", element=E4M3, scope="tensor", source=_OFP8),
    Number(name="fp8-e5m2", element=E5M2, scope="tensor", source=_OFP8),
    Number(name="int8", element=INT8, scope="tensor", source="this page",
           hardware="operands of the integer core"),
    Number(name="int8-row", element=INT8, scope="row", source="this page", hardware="operands of the integer core"),
    Number(name="bf16", element=BF16, source="upper half of IEEE 754's binary32",
           hardware="operands of the BF16 core, which flushes subnormals"),
    Number(name="fp16", element=FP16, source="IEEE 754, binary16",
           hardware="operands of the FP16 core, which flushes subnormals"))
#: Name -> number.
NUMBERS = {number.name: number for number in _EVERY}
#: Other names of these.
ALIASES = {"mxfp8": "mxfp8-e4m3", "mxfp6": "mxfp6-e2m3", "fp8": "fp8-e4m3"}


def find(name: str) -> Number | None:
    """The number of a name or of an alias, None if there is none."""
    return NUMBERS.get(ALIASES.get(name, name))
