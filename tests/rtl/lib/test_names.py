# amaranth: UnusedElaboratable=no
"""Names of modules follow from all parameters: what has one name has one text."""

from dataclasses import dataclass
from itertools import islice, pairwise, product

import pytest
from amaranth import Fragment, signed, unsigned
from amaranth.hdl import Instance

from gen.units import CORE_UNITS, make_unit
from hbfp.design import ARITHMETICS, PIPELINES, ConflictError, Design
from hbfp.format import ROUNDINGS, HBFPFormat
from hbfp.values import OptionError
from rtl.core.core import Core
from rtl.lib.component import Component
from rtl.lib.names import parameter, words
from synth.measure.area import COMPONENTS
from tests.cases import sweep


def designs():
    """Small designs of every kind of number with every option, as far as options go together."""
    wide = [{}, {"pipeline": 1}, {"pipeline": 2}, {"rows": 4, "group": (2, 2)}, {"rows": 3, "cols": 5},
            {"depth": 8}, {"rows": 4, "cols": 2}]
    found = []
    for arithmetic, multiplier, options in product(ARITHMETICS, ("plain", "recoded"), wide):
        found.append({"arithmetic": arithmetic, "multiplier": multiplier, **options})
    for arithmetic, mantissa, growth in product(("hbfp", "int"), (2, 3, 5, 8), (8, 3)):
        found += [{"arithmetic": arithmetic, "growth": growth, "format": HBFPFormat(mantissa=mantissa, block=(1, 4))},
                  {"arithmetic": arithmetic, "growth": growth, "format": HBFPFormat(mantissa=mantissa, block=(4, 4)),
                   "multiplier": "recoded"}]
    for terms, accumulate, share, guard, depth in product((2, 4, 16), ("fp32", "aligned"), (1, 2, 4), (0, 4), (8, 9)):
        found.append({"format": HBFPFormat(block=(1, terms)), "accumulate": accumulate, "share": share,
                      "guard": guard, "depth": depth})
    for pipeline, accumulate in product((1, 5), ("fp32", "aligned", "bf16")):
        found.append({"format": HBFPFormat(block=(1, 8)), "accumulate": accumulate, "share": 2, "pipeline": pipeline})
    for pipeline, accumulate in product((1, 2, 6), ("fp32", "aligned", "bf16")):
        found.append({"format": HBFPFormat(block=(1, 4)), "accumulate": accumulate, "pipeline": pipeline,
                      "fabric": "fpga"})
    for rounding, exponent, noise, block in product(ROUNDINGS, (5, 9, 16), (2, 8), ((1, 4), (4, 4), (1, 12))):
        found.append({"format": HBFPFormat(rounding=rounding, exponent=exponent, noise_bits=noise, block=block),
                      "ragged": True})
    for rows, cols, terms, group in product((2, 4, 6), (2, 4), (2, 3, 8), ((1, 1), (2, 2), (1, 2))):
        found.append({"rows": rows, "cols": cols, "group": group, "ragged": True,
                      "format": HBFPFormat(mantissa=4, block=(1, terms))})
    for mantissa, multiplier, subject in product(range(2, 17), ("plain", "recoded"), ("hbfp", "int", "aligned")):
        found.append({"format": HBFPFormat(mantissa=mantissa, block=(1, 2)), "multiplier": multiplier, "rows": 2,
                      **({"accumulate": subject} if subject == "aligned" else {"arithmetic": subject})})
    for narrow, most, terms, share in product((3, 4), (4, 5, 6), (2, 4, 8), (1, 2)):
        found += [{"format": HBFPFormat(mantissa=narrow, block=(1, terms)), "wide": most, "share": share},
                  {"format": HBFPFormat(mantissa=narrow, block=(1, terms), rounding="stochastic"), "wide": most,
                   "rows": 2, "cols": 2, "accumulate": "aligned"}]
    for arithmetic, pipeline in ((name, depth) for name, most in PIPELINES.items() for depth in range(3, most + 1)):
        found.append({"arithmetic": arithmetic, "pipeline": pipeline, "format": HBFPFormat(block=(1, 4))})
    for sparse, terms, multiplier, mantissa in product(((1, 2), (1, 4), (2, 4), (4, 8)), (4, 8, 16),
                                                       ("plain", "recoded"), (3, 4)):
        found.append({"sparse": sparse, "multiplier": multiplier,
                      "format": HBFPFormat(mantissa=mantissa, block=(1, terms))})
    for options in found:
        try:
            yield Design(**{"rows": 4, "depth": 16, **options})
        except (ConflictError, ValueError):    # options that contradict each other
            continue


class Register:
    """A platform that places each cell once, under its name."""

    def __init__(self):
        self.cells, self.open, self.new = {}, None, 0

    def place(self, cell):
        if cell is self.open:
            return None
        self.note(cell)
        return Instance(cell.module)

    def note(self, cell):
        """Keep a cell and, if its name is new, all that it has; the same name must mean the same parameters."""
        known = self.cells.setdefault(cell.module, cell)
        assert (type(known), known.params) == (type(cell), cell.params), cell.module
        if known is cell:
            before, self.open = self.open, cell
            Fragment.get(cell, self)
            self.open = before


@pytest.fixture(scope="module", params=sweep(2, [13, 4]))
def register(request):
    """All modules of every so many-th of several hundred designs."""
    result = Register()
    result.step = request.param
    for design in islice(designs(), 0, None, result.step):
        if design.name not in result.cells:
            result.note(Core.of(design))
            result.new += 1
    return result


def test_one_name_has_one_set_of_parameters(register):
    assert register.new >= 300 // register.step
    assert len({type(cell) for cell in register.cells.values()}) >= 20


def test_parameters_are_all_that_a_component_knows(register):
    """Made again from its parameters alone, a component has the same name, ports and timing."""
    for cell in register.cells.values():
        again = type(cell).made(cell.params)
        assert (again.module, again.signature, again.latencies) == (cell.module, cell.signature, cell.latencies)
        assert hash(cell.params) == hash(again.params)


def test_every_component_describes_itself(register):
    for cell in register.cells.values():
        assert cell.kind and type(cell).__doc__ and cell.apart in (True, False, None) and cell.inline > 0
        assert cell.area in (None, *COMPONENTS), cell.kind
        assert cell.module.isidentifier()


def test_cores_that_differ_in_the_multiplier_differ_in_name():
    names = [Design(arithmetic=arithmetic, multiplier=multiplier, rows=4).name
             for arithmetic in ARITHMETICS for multiplier in ("plain", "recoded")]
    assert len(set(names)) == len(names)


def test_units_of_a_design_have_their_own_latencies():
    design = Design(rows=4, format=HBFPFormat(block=(1, 16)), share=2)
    for name in CORE_UNITS:
        try:
            unit = make_unit(name, design)
        except OptionError:
            continue
        assert name == "core" or "interval" not in unit.latencies or "array" not in unit.latencies, name


@dataclass(frozen=True)
class Inner:
    """Has a name of its own."""
    NAME = "inner"
    deep: int = parameter("q", 1)


@pytest.mark.parametrize("value, text", [
    (3, "x3"), (True, "x"), (False, "x0"), ("word", "xword"), ((2, 4), "x2x4"), (("a", "b"), "xa_b"), ((), "xnone"),
    (None, "xnone"), (signed(5), "x5"), (unsigned(5), "x5u"), (Inner(2), "xinner_q2"), (Inner(), "xinner"),
    (HBFPFormat(mantissa=4, rounding="truncate"), "xm4_e10_truncate")])
def test_words(value, text):
    @dataclass(frozen=True)
    class Outer:
        part: object = parameter("x")
    assert words(Outer(value)) == [text]


def test_usual_values_are_left_out():
    @dataclass(frozen=True)
    class Outer:
        first: int = parameter("f", 0)
        second: int = parameter("s", 1)
        third: bool = parameter("bare", True)
    assert [words(Outer(*pair)) for pair in pairwise((0, 1, 2))] == [[], ["f1", "s2"]]
    assert words(Outer(third=False)) == ["bare"]


def test_a_component_without_parameters_has_its_kind_alone():
    class Plain(Component):
        """Nothing to choose."""
        kind = "plain"

        @staticmethod
        def ports(params):
            return {}
    assert Plain().module == "hbfp_plain"
