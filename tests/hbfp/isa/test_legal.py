"""Rules of fields: each is broken once and kept on both sides, and a legal instruction is let through."""

import re

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.isa.instructions import FIELDS, IllegalInstruction, Instruction, Memory, Opcode
from hbfp.isa.legal import RULES, Must, broken, check, sizes
from hbfp.system import Accelerator

MACHINE = Accelerator(core=Design(rows=16, format=HBFPFormat(block=(1, 8))))
DRAWING = Accelerator(core=Design(rows=16, format=HBFPFormat(block=(1, 8), rounding="stochastic")))
SPARSE = Accelerator(core=Design(rows=16, sparse=(2, 4), wide=12, format=HBFPFormat(block=(1, 32))))
WIDE = Accelerator(core=Design(rows=16, wide=6, format=HBFPFormat(mantissa=4, block=(1, 8))))
#: More columns than rows, and more rows than columns.
BROAD, TALL = (Accelerator(core=Design(rows=rows, cols=24 - rows, format=HBFPFormat(block=(1, 8)))) for rows in (8, 16))
ONES = {"count0": 1, "count1": 1, "count2": 1}
PASS = {"tiles": 1, "columns": 1, "rows0": 1, "rows1": 1, "passes0": 1, "passes1": 1, "passes2": 1}
#: Legal instructions.
GOOD = [
    (Opcode.LOAD, ONES), (Opcode.LOAD, ONES | {"memory": Memory.P}), (Opcode.LOAD, ONES | {"elements": 1, "run": 16}),
    (Opcode.LOAD, ONES | {"memory": Memory.W, "base": 8, "buffer1": -16}), (Opcode.STORE, ONES | {"argument": 8}),
    (Opcode.STORE, ONES | {"elements": 1, "run": 1, "dram0": 4, "buffer0": 1}),
    (Opcode.CONVERT, {"words": 1, "rows": 1, "target_row": 5, "target_word": 3}),
    (Opcode.CONVERT, {"words": 1, "rows": 1, "to_w": 1, "target": 16, "target_row": -16}),
    (Opcode.CONVERT, {"words": 1, "rows": 1, "to_w": 1, "columns": 1, "target_word": 32}),
    (Opcode.WEIGHTS, {"tiles": 65535, "repeats": 1, "base": 32}), (Opcode.MULTIPLY, PASS),
    (Opcode.MULTIPLY, PASS | {"first": 1, "last": 1, "columns": 9, "bounded": 1, "x": -1, "width": 3}),
    (Opcode.DRAIN, {"columns": 1, "rows0": 1, "rows1": 1}),
    (Opcode.DRAIN, {"columns": 1, "rows0": 1, "rows1": 1, "scale": 1, "scale_base": 5, "bias": 1, "bias_base": 6}),
    (Opcode.VECTOR, {"count0": 1, "count1": 1, "before": 1}), (Opcode.VECTOR, {"count0": 1, "count1": 1, "body": 1}),
    (Opcode.VECTOR, {"count0": 1, "count1": 1, "body": 1, "i2_base": 7}),
    (Opcode.VECTOR, {"count0": 1, "count1": 1, "body": 1, "taps": 1, "i1_inner": 3, "i1_step": 9}),
    (Opcode.NOP, {"unit": 3}), (Opcode.YIELD, {}), (Opcode.HALT, {}),
    (Opcode.CONVERT, {"words": 1, "rows": 1, "columns": 1, "target_row": 5, "target_word": 3})]
#: Changes of a legal instruction, by its place in GOOD, that make it illegal.
BAD = [
    (0, {"count1": 0}, "LOAD count1 must be other than 0, not 0"),
    (0, {"memory": 3}, "LOAD memory must be 0 to 2, not 3"),
    (0, {"argument": 9}, "LOAD argument must be 0 to 8, not 9"),
    (0, {"run": 1}, "LOAD run must be 0 where elements is 0, not 1"),
    (0, {"dram0": -4}, "LOAD dram0 must be 0 where elements is 0, not -4"),
    (2, {"memory": 1}, "LOAD memory must be 0 where elements is 1, not 1"),
    (2, {"run": 17}, "LOAD run must be 1 to 16 where elements is 1, not 17"),
    (5, {"run": 0}, "STORE run must be 1 to 16 where elements is 1, not 0"),
    (3, {"base": 12}, "LOAD base must be a multiple of 8 where memory is 1 and elements is 0, not 12"),
    (3, {"buffer2": -4}, "LOAD buffer2 must be a multiple of 8 where memory is 1 and elements is 0, not -4"),
    (6, {"rows": 0}, "CONVERT rows must be other than 0, not 0"),
    (7, {"target": 8}, "CONVERT target must be a multiple of 16 where to_w is 1, not 8"),
    (7, {"target_word": 16}, "CONVERT target_word must be 0 where to_w is 1 and columns is 0, not 16"),
    (8, {"target_row": 16}, "CONVERT target_row must be 0 where to_w is 1 and columns is 1, not 16"),
    (9, {"base": 8}, "WEIGHTS base must be a multiple of 16, not 8"),
    (9, {"repeats": 0}, "WEIGHTS repeats must be other than 0, not 0"),
    (11, {"first": 0}, "MULTIPLY columns must be 1 to 1 where first is 0, not 9"),
    (11, {"last": 0}, "MULTIPLY columns must be 1 to 1 where last is 0, not 9"),
    (11, {"bounded": 0}, "MULTIPLY x must be 0 where bounded is 0, not -1"),
    (13, {"scale": 0}, "DRAIN scale_base must be 0 where scale is 0, not 5"),
    (13, {"bias": 0}, "DRAIN bias_base must be 0 where bias is 0, not 6"),
    (14, {"before": 0}, "VECTOR before, body must be other than 0, not 0"),
    (16, {"taps": 1}, "VECTOR i2_base must be 0 where taps is 1, not 7")]


@pytest.mark.parametrize("number", range(len(GOOD)))
def test_legal(number):
    check(Instruction(*GOOD[number]), MACHINE)


@pytest.mark.parametrize("number, change, line", BAD)
def test_illegal(number, change, line):
    opcode, values = GOOD[number]
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        check(Instruction(opcode, values | change), MACHINE)


def test_stochastic_conversions():
    """Where the accelerator has them; what a conversion that draws nothing would draw is zero."""
    plain = {"words": 1, "rows": 1}
    draws = plain | {"stochastic": 1, "key": 5, "place": 6, "place_row": 7}
    check(Instruction(Opcode.CONVERT, draws), DRAWING)
    check(Instruction(Opcode.CONVERT, plain), DRAWING)
    with pytest.raises(IllegalInstruction, match="^CONVERT stochastic must be 0 to 0, not 1$"):
        check(Instruction(Opcode.CONVERT, draws), MACHINE)
    for name in ("key", "place", "place_row"):
        with pytest.raises(IllegalInstruction, match=f"^CONVERT {name} must be 0 where stochastic is 0, not 1$"):
            check(Instruction(Opcode.CONVERT, plain | {name: 1}), DRAWING)


@pytest.mark.parametrize("opcode, rule", [(opcode, rule) for opcode, rules in RULES.items() for rule in rules])
def test_every_rule_can_be_broken(opcode, rule):
    """At each of its fields; they exist, and what it depends on, too."""
    names = {field.name: field for field in FIELDS[opcode]}
    assert {*rule.fields, *rule.when} <= names.keys()
    machine = SPARSE if rule.when.get("sparse") else MACHINE
    high = rule.bounds(sizes(machine))["high"]
    worst = {Must.ZERO: 1, Must.SOME: 0, Must.RANGE: high + 1, Must.MULTIPLE: 1}[rule.must]
    for name in rule.fields:
        value = worst if names[name].range[1] >= worst else None
        assert value is not None and any(broken(rule, Instruction(opcode, rule.when | {name: value}), each)
                                         for each in (machine, BROAD, TALL))


@pytest.mark.parametrize("machine, opcode, values, line", [
    (BROAD, Opcode.CONVERT, {"target": 2}, "CONVERT target must be a multiple of 2 where to_w is 0, not 3"),
    (BROAD, Opcode.CONVERT, {"columns": 1, "target_word": 32},
     "CONVERT target_word must be a multiple of 32 where to_w is 0 and columns is 1, not 16"),
    (TALL, Opcode.CONVERT, {"target": 1, "columns": 1, "target_word": 8},
     "CONVERT target_word must be a multiple of 8 where to_w is 0 and columns is 1, not 4"),
    (TALL, Opcode.MULTIPLY, {"base": 2, "row0": -4}, "MULTIPLY row0 must be a multiple of 2, not -5"),
    (TALL, Opcode.MULTIPLY, {"pass2": 2}, "MULTIPLY pass2 must be a multiple of 2, not 1")])
def test_addresses_of_x(machine, opcode, values, line):
    """Whole words of V, or whole rows of the core, whichever is more; where both are one, any will do."""
    needed = PASS if opcode == Opcode.MULTIPLY else {"words": 1, "rows": 1}
    check(Instruction(opcode, needed | values), machine)
    _, name, *_ = line.split()
    wrong = Instruction(opcode, needed | values | {name: int(line.split()[-1])})
    check(wrong, MACHINE)
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        check(wrong, machine)


#: Fields that say that operands are wide, by opcode.
WIDTHS = [(Opcode.CONVERT, {"words": 1, "rows": 1, "wide": 1}), (Opcode.MULTIPLY, PASS | {"wide_x": 1, "low": -5}),
          (Opcode.MULTIPLY, PASS | {"wide_w": 1}), (Opcode.DRAIN, {"columns": 1, "rows0": 1, "rows1": 1, "wide": 1})]


@pytest.mark.parametrize("opcode, values", WIDTHS)
def test_wide_operands(opcode, values):
    """Legal where mantissas may be wide, and nowhere else."""
    check(Instruction(opcode, values), WIDE)
    with pytest.raises(IllegalInstruction, match=rf"^{opcode.name} wide\w* must be 0 to 0, not 1$"):
        check(Instruction(opcode, values), MACHINE)


@pytest.mark.parametrize("number, change, line", [
    (0, {"wide": 0, "part": 1}, "CONVERT part must be 0 where wide is 0, not 1"),
    (1, {"wide_x": 0}, "MULTIPLY low must be 0 where wide_x is 0, not -5")])
def test_fields_of_wide_operands_alone(number, change, line):
    opcode, values = WIDTHS[number]
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        check(Instruction(opcode, values | change), WIDE)


#: Fields of sparse weights, by opcode.
SPARSE_WEIGHTS = [(Opcode.CONVERT, {"words": 2, "rows": 1, "to_w": 1, "prune": 1, "sparse": 1}),
                  (Opcode.MULTIPLY, PASS | {"sparse": 1, "base": 2, "row0": -4})]


@pytest.mark.parametrize("opcode, values", SPARSE_WEIGHTS)
def test_sparse_weights(opcode, values):
    """Legal where weights may be sparse, and nowhere else."""
    check(Instruction(opcode, values), SPARSE)
    with pytest.raises(IllegalInstruction, match=rf"^{opcode.name} (prune|sparse) must be 0 to 0, not 1$"):
        check(Instruction(opcode, values), MACHINE)


@pytest.mark.parametrize("number, change, line", [
    (0, {"prune": 0}, "CONVERT sparse must be 0 where prune is 0, not 1"),
    (0, {"to_w": 0}, "CONVERT sparse must be 0 where to_w is 0, not 1"),
    (0, {"columns": 1}, "CONVERT sparse must be 0 where columns is 1, not 1"),
    (0, {"words": 3}, "CONVERT words must be a multiple of 2 where sparse is 1, not 3"),
    (1, {"base": 3}, "MULTIPLY base must be a multiple of 2 where sparse is 1, not 3"),
    (1, {"wide_x": 1, "low": 3}, "MULTIPLY low must be a multiple of 2 where sparse is 1, not 3"),
    (1, {"pass2": 1}, "MULTIPLY pass2 must be a multiple of 2 where sparse is 1, not 1")])
def test_what_sparse_weights_need(number, change, line):
    """Dense ones do not."""
    opcode, values = SPARSE_WEIGHTS[number]
    with pytest.raises(IllegalInstruction, match=f"^{re.escape(line)}$"):
        check(Instruction(opcode, values | change), SPARSE)
    check(Instruction(opcode, values | {"sparse": 0} | change), SPARSE)
