"""FP32 functions: argument reduction, two tables, one product. Golden twin: :mod:`golden.functions`.

One datapath serves any set of functions and holds only what the set needs (docs/design/03-functions.md)::

    result = A * G [+ k ln 2],   G = B | E 2^k | B E 2^k | 1 - B E 2^k
"""

from dataclasses import dataclass
from functools import cached_property, partial

from amaranth import Cat, Const, Module, Mux
from amaranth.lib.wiring import In, Out

from hbfp.golden.spec.floats import FP32
from hbfp.golden.spec.tables import (
    EXP2,
    EXPONENT_BITS,
    FINAL_BITS,
    FUNCTIONS,
    LN2,
    LOG2E,
    LOG_SPLIT,
    MAIN,
    ROWS,
    USES,
    VALUE_BITS,
    coefficients,
    first_row,
)

from ..lib.names import parameter
from .constant import multiply_constant
from .operation import Operation, Pipeline
from .polynomial import Polynomial
from .raw import Fields, named, normalise

#: Functions that need E = 2^f; those of 1 / (1 + e^-a); those of the normal distribution; those times the argument.
EXPONENTIAL = {"exp", "tanh", "sigmoid", "silu", "gelu", "normcdf"}
LOGISTIC = {"tanh", "sigmoid", "silu"}
NORMAL = {"gelu", "normcdf"}
SCALED = {"tanh", "silu", "gelu", "log"}
#: Exponent field from which a function is at its limit: |x| >= 128, or 16.
LARGE = {"exp": 134, "sigmoid": 134, "silu": 134, "tanh": 131, "gelu": 131, "normcdf": 131}
ONE, HALF = 0x3F800000, 0x3F000000

#: Combinational delay of each part, in units of a 24 x 24 multiplier, and the functions that have it.
DELAYS = (("square", 1.0, NORMAL), ("product", 0.6, EXPONENTIAL), ("reduce", 0.7, EXPONENTIAL),
          ("rom", 0.5, set(FUNCTIONS)), ("cubic", 0.7, set(FUNCTIONS) - {"exp"}), ("quadratic", 0.8, set(FUNCTIONS)),
          ("linear", 1.0, set(FUNCTIONS)), ("tail", 1.0, LOGISTIC | NORMAL), ("one_minus", 0.6, {"tanh"} | NORMAL),
          ("scale", 1.0, SCALED), ("sum", 0.5, {"log"}), ("output", 0.8, set(FUNCTIONS)))


class Function(Operation):
    """One FP32 function of a set, chosen by ``select`` each time: ``o`` is the function of ``a``.

    Subnormal inputs count as zero, results below 2^-126 after rounding are zero, both with their sign.

    Parameters
    ----------
    functions : sequence of str
        Of ``exp log recip rsqrt tanh sigmoid gelu silu normcdf``; the order numbers them for ``select``.
    subnormals : str
        ``flush`` only: no function has an IEEE definition to be faithful to.
    pipeline : int
        Registers between input and output, 0 to the number of cuts that the set has.

    Members
    -------
    a : ``In(32)``
        Operand.
    select : ``In(n)``
        Only with more than one function: its position in ``functions``. Others give an undefined result.
    o : ``Out(32)``
        Result, ``pipeline`` cycles later; a NaN is always 0x7FC00000.
    en : ``In(1)``
        Only if pipelined: while low every register holds.

    Raises
    ------
    ValueError
        If a function is unknown or named twice, or the pipeline is deeper than there are cuts.
    """
    OPERANDS = ("a",)
    SUBNORMALS = ("flush",)
    FORMATS = False

    @dataclass(frozen=True)
    class Parameters(Operation.Parameters):
        functions: tuple[str, ...] = parameter("", FUNCTIONS)

        def __post_init__(self):
            super().__post_init__()
            names = (self.functions,) if isinstance(self.functions, str) else tuple(self.functions)
            object.__setattr__(self, "functions", names)
            if not names:
                raise ValueError("Functions must name at least one")
            for name in names:
                if name not in FUNCTIONS:
                    raise ValueError(f"Function must be one of {', '.join(FUNCTIONS)}, not {name!r}")
            if len(set(names)) < len(names):
                raise ValueError(f"Functions must differ, not {', '.join(names)}")

    @classmethod
    def data_ports(cls, params):
        ports = {"a": In(32), "o": Out(32)}
        return ports | ({"select": In(range(len(params.functions)))} if len(params.functions) > 1 else {})

    @property
    def functions(self):
        """Names of the functions, by their position."""
        return self.params.functions

    @property
    def need(self):
        """The same as a set."""
        return set(self.functions)

    @cached_property
    def CUTS(self):  # noqa: N802 - a constant for any one set of functions
        """A cut behind every part that the set has."""
        parts = [(name, delay) for name, delay, users in DELAYS if users & self.need]
        whole, before, cuts = sum(delay for _, delay in parts), 0.0, {}
        for name, delay in parts:
            before += delay
            cuts[name] = before / whole
        return cuts

    def any(self, group):
        """Whether the chosen function is in ``group``; a constant where the set decides it."""
        if not self.need & set(group):
            return Const(0, 1)
        if self.need <= set(group):
            return Const(1, 1)
        hits = [self.chosen == i if i else ~self.chosen.any() for i, name in enumerate(self.functions) if name in group]
        return named(self.m, Cat(hits).any(), "is_" + "_".join(sorted(self.need & set(group))))

    def among(self, choices, default=None):
        """Select by function: ``choices`` is {names: value}; only functions of the set cost anything."""
        result = default
        for group, value in choices.items():
            group = {group} if isinstance(group, str) else set(group)
            if self.need & group:
                result = value if result is None else Mux(self.any(group), value, result)
        return result

    def _cut(self, name, live):
        """Registers at ``name`` for all values of ``live``."""
        if name not in self.CUTS:
            return
        keys = list(live)
        values = self.pipe.cut(name, *(None if isinstance(live[key], Const) else live[key] for key in keys))
        live.update((key, value) for key, value in zip(keys, values, strict=True) if value is not None)
        if "select" in live:
            self.chosen = live["select"]

    def datapath(self, m: Module, pipe: Pipeline):
        self.m, self.pipe = m, pipe
        live = {}
        if len(self.functions) > 1:
            self.chosen = live["select"] = self.select
        x = Fields(m, FP32, self.a, "a")
        live |= dict(sign=x.sign, exponent=x.exponent, fraction=x.fraction, special=self._special(x),
                     code=self._special_code(x))
        self._exponent(live)
        if self.need != {"exp"}:
            self._address(live)
        self._tables(live)
        self._value(live)
        self._scale(live)
        return self._pack(live)

    # --- Special values -------------------------------------------------------------------------

    def _special(self, x):
        """Whether the result is one of :meth:`_special_code`."""
        limit = self.among({name: x.exponent >= field for name, field in LARGE.items()}, Const(0, 1))
        negative = x.sign & self.any({"log", "rsqrt"})
        return named(self.m, x.top | ~x.nonzero_exponent | limit | negative, "special")

    def _special_code(self, x):
        """Result for NaN, Inf, zero, arguments at the limit and where the function is not defined."""
        m, sign, zero = self.m, x.sign, ~x.nonzero_exponent
        keep = Cat(Const(0, 31), sign)
        inf, one, half, none = (Const(bits, 32) for bits in (FP32.inf, ONE, HALF, 0))
        code = self.among({
            "exp": Mux(zero, one, Mux(sign, none, inf)),
            "log": Mux(zero, inf | 1 << 31, Mux(sign, FP32.nan, inf)),
            "recip": Mux(zero, keep | inf, keep),
            "rsqrt": Mux(zero, keep | inf, Mux(sign, FP32.nan, none)),
            "tanh": Mux(zero, keep, keep | one),
            ("sigmoid", "normcdf"): Mux(zero, half, Mux(sign, none, one)),
            ("silu", "gelu"): Mux(zero | sign, keep, self.a),
        })
        return named(m, Mux(x.nan, FP32.nan, code)[:32], "special_code")

    # --- Argument reduction ---------------------------------------------------------------------

    def _exponent(self, live):
        """k and f of 2^(k + f) = e^x, e^-|x|, e^-2|x| or e^(-x^2 / 2)."""
        m = self.m
        if not self.need & EXPONENTIAL:
            return
        argument, drop = Cat(live["fraction"], Const(1, 1)), 23
        if self.need & NORMAL:
            square = named(m, argument * argument, "square")
            live["argument"] = named(m, Mux(self.any(NORMAL), square[12:], argument << 11), "argument")
            drop += 11
            self._cut("square", live)
            argument = live["argument"]
        product = multiply_constant(m, argument, LOG2E, "log2e_product")
        live["product"] = named(m, product[drop:], "log2e_scaled")
        self._cut("product", live)
        exponent = live["exponent"]
        distance = self.among({("exp", "sigmoid", "silu"): 133 - exponent, "tanh": 132 - exponent,
                               tuple(NORMAL): 261 - (exponent << 1)})
        distance = named(m, distance.as_signed()[:9], "reduce_distance")     # negative for special values only
        y = live.pop("product")
        y = named(m, Mux(distance[6:].any(), 0, y >> distance[:6])[:len(y)], "magnitude_log2e")
        negative = self.among({"exp": live["sign"]}, Const(1, 1))
        y = named(m, Mux(negative, -y, Cat(y, Const(0, 1))).as_signed(), "y")
        live["f"], live["k"] = named(m, y[:EXPONENT_BITS], "f"), named(m, (y >> EXPONENT_BITS).as_signed(), "k")
        live.pop("argument", None)

    def _address(self, live):
        """Row and word of the table MAIN."""
        m, exponent, fraction = self.m, live["exponent"], live["fraction"]
        significand = Cat(fraction, Const(1, 1))
        half, fine, coarse = fraction[22], Cat(Const(0, 2), fraction[:22]), Cat(Const(0, 1), fraction)
        word, live["below"], live["binade"] = coarse, Const(0, 1), Const(0, 3)
        if self.need & (LOGISTIC | NORMAL):
            below = live["below"] = named(m, exponent < 127, "below")
            distance = named(m, (126 - exponent)[:8], "word_distance")
            shrunk = named(m, Mux(distance[5:7].any(), 0, significand >> distance[:5])[:24], "shrunk")
            word = Mux(below, shrunk, coarse)
            row = (exponent + self.any({"tanh"}) - 126)[:3]
            live["binade"] = named(m, Mux(below, 0, row)[:3], "binade")
            if self.need & {"sigmoid", "silu"}:
                over = named(m, self.any(LOGISTIC) & ~below & (exponent >= 132), "over")
                word = word | over.replicate(24)
                live["binade"] = named(m, Mux(over, 5, live["binade"])[:3], "binade_limited")
        binade = live["binade"]
        far = named(m, binade >= 2, "far")
        word = self.among({("recip", "rsqrt"): fine, tuple(NORMAL): Mux(far, fine, word), "log": coarse}, word)
        live["word"] = named(m, word[:24], "word")
        odd = ~exponent[0]
        rows = {"recip": half, "rsqrt": Cat(half, odd), "log": Const(0, 1),
                "tanh": Mux(live["below"], self._row("tanh"), self._row("logistic") + binade),
                tuple(NORMAL): Mux(far, Cat(half, binade - 1)[:4], binade)}
        rows = {group: value if group == "tanh" else self._row(USES[group if isinstance(group, str) else group[0]][0])
                + value for group, value in rows.items()}
        row = self.among(rows, self._row("logistic") + binade if self.need & {"sigmoid", "silu"} else None)
        live["row"] = named(m, row[:max((sum(self._counts().values()) - 1).bit_length(), 1)], "row")

    def _counts(self):
        """Rows of the tables that this set of functions reads."""
        used = {table for name in self.need for table in USES[name]}
        return {table: rows for table, rows in ROWS if table in used}

    def _row(self, table):
        """First row of ``table`` among those that this set of functions reads."""
        row = 0
        for name, rows in self._counts().items():
            if name == table:
                return row
            row += rows
        return 0

    # --- Polynomials ----------------------------------------------------------------------------

    def _tables(self, live):
        """E and B."""
        m, tables = self.m, {}
        if self.need & EXPONENTIAL:
            tables["e"] = Polynomial(m, EXP2, coefficients("exp2"), "e"), live.pop("f"), None
        if self.need != {"exp"}:
            main = coefficients("main")
            segments = [main[i] for table, rows in self._counts().items()
                        for i in range(first_row(table) << MAIN.index, first_row(table) + rows << MAIN.index)]
            tables["b"] = Polynomial(m, MAIN, segments, "b"), live["word"], live.pop("row")
        self._cut_tables = {}
        pending = {}
        for name, (table, word, row) in tables.items():
            pending[name] = table
            live[f"{name}_word"], live[f"{name}_row"] = word, row if row is not None else Const(0, 1)
        live.pop("word", None)
        self._log_argument(live)
        self._cut("reduce", live)
        for name, table in pending.items():
            word, row = live.pop(f"{name}_word"), live.pop(f"{name}_row")
            address = word[table.form.position:]
            address = address if isinstance(row, Const) else Cat(address, row)
            live[f"{name}_t"] = table.position(word)
            live |= {f"{name}_c{i}": c for i, c in enumerate(table.rom(named(m, address, f"{name}_address")))}
        self._cut("rom", live)
        for name, table in pending.items():
            live[f"{name}_value"] = live.pop(f"{name}_c{table.form.degree}")
        for degree, cut in ((2, "cubic"), (1, "quadratic"), (0, "linear")):
            for name, table in pending.items():
                if degree < table.form.degree:
                    live[f"{name}_value"] = table.step(degree, live[f"{name}_value"], live.pop(f"{name}_c{degree}"),
                                                       live[f"{name}_t"])
                    if degree == 0:
                        live.pop(f"{name}_t")
            self._cut(cut, live)

    def _log_argument(self, live):
        """|u| of log, shifted to its leading one where k = 0."""
        if "log" not in self.need:
            return
        m, fraction = self.m, live["fraction"]
        upper = named(m, fraction[19:] >= LOG_SPLIT, "upper")
        u = named(m, Mux(upper, (1 << 23) - fraction, Cat(Const(0, 1), fraction))[:24], "u")
        k = named(m, (live["exponent"] - 127 + upper).as_signed()[:9].as_signed(), "log_k")
        near = named(m, ~k.any(), "near_one")
        lead = normalise(m, u)
        shifted, count = lead.value, lead.count
        live |= dict(u=named(m, Mux(near, shifted, u), "log_u"), upper=upper, log_k=k, near=near,
                     lead=named(m, Mux(near, count, 0)[:5], "log_lead"), log_zero=named(m, ~u.any(), "log_zero"))

    # --- Combination ----------------------------------------------------------------------------

    def _value(self, live):
        """G, with ``VALUE_BITS`` fraction bits, and whether 2^k still multiplies it."""
        m, sign = self.m, live["sign"]
        b, e = live.pop("b_value", None), live.pop("e_value", None)
        if not self.need & (LOGISTIC | NORMAL):
            live["g"] = named(m, self.among({"exp": e}, b), "g")
            live["with_k"] = self.any({"exp"})
            return
        live["b"], live["e"] = b, e
        live["tail"] = named(m, (b * e)[VALUE_BITS:], "tail")
        # 2^-k of the normal tail also carries the scale of its table row.
        live["k"] = named(m, live["k"] - self.among({tuple(NORMAL): live["binade"] + 1}, Const(0, 1)), "tail_k")
        live.pop("binade")
        self._cut("tail", live)
        b, e, tail, k, below, sign = (live[name] for name in ("b", "e", "tail", "k", "below", "sign"))
        upper = None
        if self.need & ({"tanh"} | NORMAL):
            distance = named(m, (-k - self.any({"tanh"})).as_signed(), "tail_distance")
            moved = named(m, Mux(distance[5:].any(), 0, tail >> distance[:5])[:VALUE_BITS + 2], "tail_moved")
            upper = named(m, ((1 << VALUE_BITS) - moved)[:VALUE_BITS + 1], "one_minus")
        g = self.among({"exp": e, "tanh": Mux(below, b, upper) if upper is not None else None,
                        ("sigmoid", "silu"): Mux(sign, tail, b),
                        tuple(NORMAL): Mux(sign, tail, upper) if upper is not None else None}, b)
        live["g"] = named(m, g, "g")
        live["with_k"] = named(m, self.any({"exp"}) | self.any({"sigmoid", "silu", *NORMAL}) & sign, "with_k")
        for name in ("b", "e", "tail"):
            live.pop(name)
        self._cut("one_minus", live)

    def _scale(self, live):
        """A * G, ``FINAL_BITS`` fraction bits, and the exponent of the result."""
        m, exponent = self.m, live.pop("exponent")
        below = live.pop("below", Const(0, 1))
        fraction = live.pop("fraction")
        live.pop("upper", None) if "log" not in self.need else None
        a = None
        if self.need & SCALED:
            scaled = self.any({"silu", "gelu"}) | self.any({"tanh"}) & below
            a = Mux(scaled, Cat(fraction, Const(1, 1)), 1 << 23)
            a = named(m, self.among({"log": live.get("u")}, a)[:24], "a_operand")
            product = named(m, a * live["g"], "scaled_product")
            number = product[23 + VALUE_BITS - FINAL_BITS:]
            number = self.among({"log": product[24 + VALUE_BITS - FINAL_BITS:]}, number)
        else:
            number = Cat(Const(0, FINAL_BITS - VALUE_BITS), live["g"])
        live.pop("g")
        # Two's complement exponents; 127 more than the bias of the pattern.
        odd = ~exponent[0]
        base = self.among({("exp", "log", "sigmoid", "normcdf"): Const(0, 1), "recip": 126 - exponent,
                           "rsqrt": -((exponent - 127 - odd) >> 1) - 1, ("silu", "gelu"): exponent - 127,
                           "tanh": Mux(below, exponent - 127, 0)})
        if self.need & EXPONENTIAL:
            base = base + Mux(live["with_k"], live.pop("k"), 0)
        if "log" in self.need:
            base = base - Mux(self.any({"log"}), live.pop("lead"), 0)
        live.pop("with_k", None)
        live["base"] = named(m, base.as_signed()[:11].as_signed(), "base")
        width = 37 if "log" in self.need else 33
        live["number"] = named(m, (number | Const(0, width))[:width], "number")
        live.pop("u", None)
        self._cut("scale", live)
        if "log" in self.need:
            self._log_sum(live)
            self._cut("sum", live)

    def _log_sum(self, live):
        """k ln 2 + u L, as sign and magnitude."""
        m, number, near, k = self.m, live["number"], live.pop("near"), live.pop("log_k")
        upper = live.pop("upper")
        signed_number = named(m, Mux(upper, -number, Cat(number, Const(0, 1))).as_signed(), "log_near")
        total = named(m, (k * Const(LN2) + signed_number).as_signed()[:40].as_signed(), "log_total")
        negative = named(m, Mux(near, upper, total[-1]) & ~(near & live["log_zero"]), "log_negative")
        magnitude = named(m, Mux(near, number, Mux(total[-1], -total, total))[:len(number)], "log_magnitude")
        live["number"] = named(m, self.among({"log": magnitude}, number)[:len(number)], "log_number")
        live["log_negative"] = negative
        live["log_zero"] = named(m, near & live["log_zero"], "log_one")

    # --- Result ---------------------------------------------------------------------------------

    def _pack(self, live):
        """Normalise, round half up, select special values."""
        m, number, base = self.m, live["number"], live["base"]
        width = len(number)
        lead = normalise(m, number, stages=4 if "log" in self.need else 3)
        normal, count = lead.value, lead.count
        rounded = named(m, (normal[-24:] + normal[-25])[:25], "rounded")
        biased = named(m, (base + (127 + width - 1 - FINAL_BITS) - count + rounded[24]).as_signed(), "biased")
        zero = biased <= 0
        if "log" in self.need:
            zero = zero | self.any({"log"}) & live["log_zero"]
        over = ~zero & (biased >= 255)
        sign = self.among({tuple({"recip", "tanh", "silu", "gelu"} & self.need): live["sign"],
                           "log": live.get("log_negative")}, Const(0, 1))
        magnitude = Cat(rounded[:23], biased[:8])
        magnitude = Mux(zero, 0, Mux(over, FP32.inf, magnitude))
        result = Mux(live["special"], live["code"], Cat(magnitude[:31], sign))
        return named(m, result[:32], "result")


#: Unit name -> constructor with its keyword arguments, for :mod:`rtl.fp32.units`.
FUNCTION_UNITS = {f"fp32.{name}": partial(Function, (name,)) for name in FUNCTIONS} | {"fp32.function": Function}
