"""Which format each tensor role of a layer has, and in which order its products add up."""

import json
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, Self, Unpack

from hbfp.checks import check_choice
from hbfp.design import ACCUMULATES
from hbfp.format import HBFPFormat
from hbfp.values import given

from ..formats import names
from ..matmul import check_widths
from ..spec.numbers import NUMBERS, Number
from .options import FormatOptions, check_options

#: ``block`` is the hardware's order, bit for bit; ``quick`` leaves the order of additions to the
#: platform's BLAS: same converted operands, other low bits, not reproducible across machines.
ORDERS = ("block", "quick")
#: ``hbfp`` is docs/numerics.md; ``emulator`` its section 10, for comparison with work that used the research emulator;
#: ``values`` rounds each operand to its format, of whatever kind, and leaves the product to torch: docs/formats.md. The
#: others are numbers that share no exponents, in the order of an array with as many rows as a block has terms.
PLAIN = ("fp32", "bf16", "fp16", "int8")
MODES = ("hbfp", "emulator", "values", *PLAIN)
#: Names of formats that differ between the roles.
NAMED = {"int8-channel": {"x": "int8", "w": "int8-row", "g": "int8"},
         "int8-token": {"x": "int8-row", "w": "int8-row", "g": "int8-row"}}
#: Guard width of an ``aligned`` accumulator where none is given.
GUARD = 4
#: Fields of :class:`Formats` beside the roles.
_OPTIONS = ("order", "accumulate", "guard", "growth", "mode")


@dataclass(frozen=True, kw_only=True)
class Formats:
    """Formats of a layer's three matrix products.

    Parameters
    ----------
    x, w, g : HBFPFormat or Number
        Inputs, weights, gradients of the output; equal block lengths along K, but in mode ``values``.
    order : str
        One of :data:`ORDERS`.
    accumulate : str
        ``fp32`` or ``aligned``, as of :func:`golden.matmul.matmul`; ``block`` order only.
    guard, growth : int
        Of ``aligned``: fraction bits below a block sum, and bits for 2^growth blocks along K; None is as many
        bits as each product needs, which gives the results of any number that is enough.
    mode : str
        One of :data:`MODES`. ``emulator`` takes square tiles and, of a format, mantissa width and rounding; those of
        :data:`PLAIN` take the terms of a block along K. Where a role is no HBFP the mode is ``values``.

    Attributes
    ----------
    text : str
        All of it as JSON; :meth:`read` is the way back.

    Raises
    ------
    ValueError
        If a choice is unknown or block lengths differ.
    """
    x: Any
    w: Any
    g: Any
    order: str = "block"
    accumulate: str = "fp32"
    guard: int = GUARD
    growth: int | None = None
    mode: str = "hbfp"
    text: str = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        check_choice("Order", self.order, ORDERS)
        check_choice("Accumulation", self.accumulate, ACCUMULATES)
        check_choice("Mode", self.mode, MODES)
        check_widths(self.guard, 0 if self.growth is None else self.growth)
        if self.accumulate != "aligned" and (self.guard, self.growth) != (GUARD, None):
            raise ValueError(f"Guard and growth width need accumulation 'aligned', not {self.accumulate!r}")
        for role in ("x", "w", "g"):
            if not isinstance(getattr(self, role), names.Operand):
                raise TypeError(f"Format of {role} must be an HBFPFormat or a Number, not {getattr(self, role)!r}")
        if self.mode == "hbfp" and any(isinstance(fmt, Number) for fmt in self.roles):
            object.__setattr__(self, "mode", "values")
        # Made once: tracing by torch.compile does not reach into json.
        roles = {role: data_of(fmt) for role, fmt in zip("xwg", self.roles, strict=True)}
        object.__setattr__(self, "text", json.dumps(roles | {name: getattr(self, name) for name in _OPTIONS}))
        if self.mode == "values":
            self._check_values()
            return
        if other := next((fmt for fmt in self.roles if isinstance(fmt, Number)), None):
            raise ValueError(f"Mode {self.mode!r} needs HBFP formats, not {other}")
        if len({fmt.terms for fmt in self.roles}) > 1:
            raise ValueError("Blocks of x, w and g must have equal terms along K, not "
                             f"{self.x.terms}, {self.w.terms} and {self.g.terms}")

        if self.mode == "emulator":
            self._check_emulator()
        if self.mode in PLAIN:
            self._check_plain()

    def _check_emulator(self):
        for role in ("x", "w", "g"):
            fmt = getattr(self, role)
            if not fmt.square:
                raise ValueError(f"Mode 'emulator' needs square tiles such as (24, 24), not {fmt.block}")
            if replace(fmt, mantissa=8, block=(1, 32), rounding="rne") != HBFPFormat() or fmt.rounding == "truncate":
                raise ValueError("Mode 'emulator' takes mantissa, block and rounding 'rne' or 'stochastic' of a "
                                 f"format, not {fmt}")
        if (self.order, self.accumulate) != ("block", "fp32"):
            raise ValueError("Mode 'emulator' has torch's own sums: neither order nor accumulation can be chosen")

    def _check_values(self):
        if (self.order, self.accumulate) != ("block", "fp32"):
            raise ValueError("Mode 'values' has torch's own sums: neither order nor accumulation can be chosen")
        if odd := next((fmt for fmt in self.roles if fmt.rounding == "stochastic"), None):
            raise ValueError(f"Mode 'values' needs rounding 'rne' or 'truncate', not {names.words(odd)}")

    def _check_plain(self):
        if (self.order, self.accumulate) != ("block", "fp32"):
            raise ValueError(f"Mode {self.mode!r} has one order, 'block', and FP32 sums")
        if any(fmt.square or fmt.rounding != "rne" for fmt in self.roles):
            raise ValueError(f"Mode {self.mode!r} needs blocks (1, B) and rounding 'rne'")

    @classmethod
    def of(cls, fmt: "FormatLike" = "hbfp8", **options: Unpack[FormatOptions]) -> "Formats":
        """From one format, or one per role; a :class:`Formats` passes through. For names see :func:`named`.

        Parameters
        ----------
        fmt : str, HBFPFormat or Formats
            Of every role that ``options`` does not give.
        options
            ``w`` and ``g``, formats, and all that a :class:`Formats` has beside them.

        Raises
        ------
        TypeError
            If ``fmt`` is no format, an option is none of these or stands beside a :class:`Formats`, which has all.
        """
        if options:                                        # traced code has none, and is not led through the check
            check_options(cls.of, options)
        if isinstance(fmt, Formats):
            if options:
                raise TypeError(f"A Formats has {', '.join(options)} of its own; give one of the two")
            return fmt
        if isinstance(fmt, str):
            fmt, options = _read(fmt, options)
        fmt = checked("Format", fmt)
        every: dict[str, Any] = {"w": fmt, "g": fmt, **options}
        return cls(x=fmt, **every | {role: checked(f"Format of {role}", every[role]) for role in ("w", "g")})

    @property
    def roles(self) -> tuple[Any, Any, Any]:
        """Formats of x, w and g."""
        return self.x, self.w, self.g

    def with_mantissa(self, mantissa: int) -> Self:
        """The same with another mantissa width in every role; ValueError if one is no HBFP."""
        if odd := next((fmt for fmt in self.roles if isinstance(fmt, Number)), None):
            raise ValueError(f"A mantissa width needs HBFP formats, not {odd}")
        return replace(self, **{role: replace(getattr(self, role), mantissa=mantissa) for role in ("x", "w", "g")})

    @classmethod
    @lru_cache(256)
    def read(cls, text: str) -> Self:
        """The formats whose :attr:`text` this is."""
        data = json.loads(text)
        options = {name: data[name] for name in _OPTIONS}
        if options["accumulate"] != "aligned":
            options["growth"] = None                       # texts had one for all sums
        x, w, g = (format_of(data[role]) for role in ("x", "w", "g"))
        return cls(x=x, w=w, g=g, **options)

    def nearest(self) -> Self:
        """The same with ``rne`` in place of ``stochastic``: what evaluation uses."""
        return replace(self, **{role: replace(fmt, rounding="rne") for role in ("x", "w", "g")
                                if (fmt := getattr(self, role)).rounding == "stochastic"})

    @property
    def stochastic(self) -> bool:
        """Whether any role rounds stochastically and so needs a noise stream; mode ``emulator`` has torch's noise."""
        return self.mode == "hbfp" and any(fmt.rounding == "stochastic" for fmt in (self.x, self.w, self.g))

    @property
    def lanes(self) -> int:
        """Converter lanes of the noise stream: the largest divisor of a block's terms up to 32."""
        return max(lanes for lanes in range(1, 33) if self.x.terms % lanes == 0)


#: What stands for formats: one for all roles, a name such as "hbfp8", or a :class:`Formats`.
FormatLike = Formats | HBFPFormat | Number | str


def data_of(fmt: names.Operand) -> dict[str, Any]:
    """A role's format as data for JSON."""
    if not isinstance(fmt, Number):
        return asdict(fmt)
    return {"number": fmt.name} | ({} if fmt.top is None else {"top": fmt.top})


def format_of(data: dict[str, Any]) -> names.Operand:
    """The format of which :func:`data_of` gave this."""
    if "number" in data:
        return NUMBERS[data["number"]].up_to(data.get("top"))
    return HBFPFormat(**data | {"block": tuple(data["block"])})


def _read(name, options):
    """A name, with ``@SUMS`` behind it for an accumulation, as the format of x and the options that it stands for."""
    name, at, sums = name.partition("@")
    said = {"accumulate": sums} if at else {}
    said |= {role: value for role, value in NAMED.get(name.lower(), {}).items() if role != "x"}
    return NAMED.get(name.lower(), {}).get("x", name), said | options


def checked(what: str, fmt: Any) -> Any:
    """The format that ``fmt`` is or names; ``TypeError`` if it is no format, ``ValueError`` if it names none."""
    if isinstance(fmt, str):
        fmt = names.read(fmt)
    if not isinstance(fmt, names.Operand):
        raise TypeError(f"{what} must be a name such as 'hbfp8' or an HBFPFormat, not {given(fmt)}")
    return fmt
