"""Changes of our own code, one place each: which there are, what is said of them, and that tests see some of each part.
"""

import ast
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
import z3

from hbfp import files
from rtl.accelerator.queue import Queue
from rtl.lib import layout
from rtl.lib.fifo import Fifo
from tests.formal.prove import Laws
from tests.mutate import __main__ as mutate
from tests.mutate import text, units
from tests.mutate.emitted import NUMBER, in_itself
from tests.mutate.live import Modules
from tests.mutate.netlist import ALL, NO_CHANGE, PORT, Mutant, Netlist
from tests.mutate.parts import PARTS, Part
from tests.mutate.reasons import REASONS, reason

TEXT = '''"""No change here: 1 + 2."""
WIDTH = 1 + 2


class Part:
    def body(self, m, a, b):
        """Nor here."""
        with m.If(a & b):
            m.d.sync += self.o.eq(Mux(a == 3, a + b, ~b))
'''


def test_changes_are_one_place_each():
    found = text.mutants(TEXT)
    assert [(each.line, each.before, each.after) for each in found] == [
        (8, "m.If(a & b)", "(m.If(a & b == 0))"), (8, "a & b", "(a | b)"),
        (9, "self.o.eq(Mux(a == 3, a + b, ~b))", "[]"),
        (9, "Mux(a == 3, a + b, ~b)", "(Mux(a == 3, ~b, a + b))"), (9, "a == 3", "(a != 3)"), (9, "a + b", "(a - b)"),
        (9, "~b", "(b)"), (9, "3", "4")]
    for each in found:
        assert ast.parse(each.text) and len(each.text) - len(TEXT) == len(each.after) - len(each.before)


PYTHON = '''def least(rows, known):
    while rows and 0 < known <= 3:
        rows = [row for row in rows if row] or min(rows, key=len)
    return known if not rows else rows[-1] // 2 if rows in known else "none"
'''


def test_changes_of_python():
    """Each condition is turned round once, also where a change in it does so."""
    found = text.mutants(PYTHON)
    assert [(each.before, each.after) for each in found if each.line == 2] == [
        ("rows and 0 < known <= 3", "(rows or 0 < known <= 3)"), ("0 < known <= 3", "(0 <= known <= 3)"),
        ("0 < known <= 3", "(0 < known < 3)"), ("0", "1"), ("3", "4"),
        ("rows and 0 < known <= 3", "(not (rows and 0 < known <= 3))")]
    assert [(each.before, each.after) for each in found if each.line == 3] == [
        ("[row for row in rows if row] or min(rows, key=len)", "([row for row in rows if row] and min(rows, key=len))"),
        ("min(rows, key=len)", "(max(rows, key=len))"), ("row", "(not row)")]
    assert [(each.before, each.after) for each in found if each.line == 4] == [
        ("not rows", "(rows)"), ("rows in known", "(rows not in known)"), ("rows[-1] // 2", "(rows[-1] * 2)"),
        ("2", "3"), ("1", "2")]
    for each in found:
        assert ast.parse(each.text)


def test_verdicts(tmp_path, capsys, monkeypatch):
    """A queue that hands on wrongly is seen; one that could count further than it does is not."""
    every, out = text.mutants, tmp_path / "found.json"

    def some(whole):
        lines = whole.splitlines()
        return [each for each in every(whole) if each.before == "self.i.valid & self.i.ready" or (
            each.before == "1" and lines[each.line - 1].lstrip().startswith("behind = Signal(range("))]
    monkeypatch.setattr(text, "mutants", some)
    assert mutate.main(["rtl/lib/fifo.py", "--json", str(out)]) == 1
    (rows,) = json.loads(out.read_text())["files"].values()
    assert [each["verdict"] for each in rows] == [text.SURVIVED, text.SEEN]
    assert f"rtl/lib/fifo.py:{rows[0]['line']}: 1  ->  2" in capsys.readouterr().out


def test_what_cannot_be_judged():
    assert text.tests_of("rtl/accelerator/writer.py") == ["tests/rtl/accelerator/test_accelerator.py"]
    with pytest.raises(SystemExit):
        mutate.main(["rtl/none.py"])


def test_what_changes_nothing_is_proved():
    """In a queue: no change; a bit that counts turned round; a constant 0 that becomes 0, and 1."""
    queue = Netlist(Fifo(3, 3))
    every = queue.drawn(("fifo",), 60, 0)
    assert len({each.words for each in every}) == 60 and not any(" CLK " in each.words for each in every)
    assert queue.equal(Mutant(NO_CHANGE, queue.top, ""), ("fifo",))
    start = next(each.words for each in every if "$procmux" in each.words and "-port B" in each.words)
    verdicts = {mode: queue.equal(Mutant(re.sub("-mode .*? (.*?)( -ctrlbit .*)?$", rf"-mode {mode} \1", start),
                                         queue.top, ""), ("fifo",)) for mode in ("inv", "const0", "const1")}
    assert verdicts == {"inv": False, "const0": True, "const1": False}


def test_a_part_is_its_first_kind_and_what_it_has_in_it():
    queue = Netlist(Fifo(3, 3))
    (memory,) = queue.uses[queue.top]
    assert queue.modules(("fifo",)) == [queue.top] and queue.modules(("fifo", ALL)) == [queue.top, memory]
    assert queue.modules(("ram",)) == [memory] and queue.modules(("r[a-z]+", "fifo")) == [memory]
    every, some = (Part(("fifo", ALL), (), without=name).drawn(queue, 1000, 0) for name in ("", "rtl/lib/fifo.py"))
    assert {each.module for each in every} == {queue.top, memory} and 0 < len(some) < len(every)
    assert not any(each.source.startswith("rtl/lib/fifo.py:") for each in some)


def test_laws_of_a_part_judge_what_is_in_it():
    """Of a queue's changes those in its first in, first out, too; one without laws stays open."""
    design = SimpleNamespace(netlist=Netlist(Queue(4, 2)), system=None)
    every = [each for each in design.netlist.drawn(("queue", ALL), 200, 0) if "_fifo_" in each.module][:3]
    tests = PARTS["queue"].of_laws(design.netlist, every[0].module)
    assert [name for name, _ in tests] == [design.netlist.top]
    assert set(map(id, mutate.by_law(design, tests, every))) == set(map(id, every))
    assert mutate.SEEN in {each.verdict for each in every}
    assert not list(mutate.by_law(design, PARTS["core"].of_laws(design.netlist, every[0].module), every))


def test_what_is_hollow_gives_anything():
    """A word that a memory keeps is not kept where it is hollow; registers of what is around it begin as before."""
    queue = Netlist(Fifo(3, 3))
    whole, hollow = queue.step(queue.top), queue.step(queue.top, ("ram",))
    stays = "the head stays", lambda step: z3.Implies(z3.And(step.now.o__valid, z3.Not(step.now.o__ready)), (
        step.then.o__payload == step.now.o__payload))
    assert [step.broken(Laws({stays[0]: stays[1](step)})) for step in (whole, hollow)] == [[], [stays[0]]]


@pytest.mark.cosim
@pytest.mark.parametrize("place", [pytest.param(n, marks=() if unit.test.endswith("_encode.py") else pytest.mark.slow)
                                   for n, unit in enumerate(units.UNITS)])
def test_units_of_arithmetic_judge_changes_of_their_modules(place):
    """A bit of a result that is turned round; none of another module."""
    unit = units.UNITS[place]
    own = next(each for each in unit.netlist.drawn((".*",), 500, 0) if " -mode inv " in each.words and (
        " -port Y " in each.words))
    judge = units.alone(unit.netlist, [own, Mutant(NO_CHANGE, "another", "")], [unit])
    assert [judge(number) for number in (1, 2)] == [unit.test, ""]


def test_text_that_changes_in_itself_has_the_ports_of_the_design():
    queue = Netlist(Fifo(3, 3))
    text = queue.verilog(queue.drawn(("fifo",), 3, 0))
    own = in_itself(text, queue.top)
    ports = re.compile(rf"module {queue.top}\((.*?)\);")
    assert ports.search(text)[1].split(", ") == [*ports.search(own)[1].split(", "), PORT]
    assert text.count(f"{PORT} == ") == own.count(f"{PORT} == ") >= 3 and NUMBER not in text
    assert len(re.findall(rf"reg \[15:0\] {PORT};\n  initial {PORT} = .*{NUMBER}", own)) == 1


def test_changes_of_a_module_act_where_it_is_loaded(monkeypatch):
    """And one that is folded away is none."""
    monkeypatch.setattr(layout.index, "__code__", layout.index.__code__)    # is put back
    modules = Modules("rtl/lib", "names")
    assert "rtl/lib/layout.py" in modules.modules and "rtl/lib/names.py" not in modules.modules
    (mutant,) = (each for each in modules.drawn((), 10_000, 0) if each.words.endswith(": count - 1 -> (count + 1)"))
    assert layout.index(8).width == 3 and not modules.equal(mutant, ()) and modules.digest(mutant.module)
    modules.act(mutant)
    assert layout.index(8).width == 4


def test_reasons_are_of_changes_that_there_are():
    for module, given in REASONS.items():
        whole = (files.ROOT / module).read_text()
        every = {reason(module, whole, each.text) for each in text.mutants(whole)} - {""}
        assert every == set(given.values()) and len(every) == len(given)


#: Two functions of a module, which each have a test: who judges a change of the second, by the lines of each.
LINES = """
import sys
sys.path.insert(0, folder := sys.argv[1])
import one
from tests.mutate.judge import Judge
judge = Judge([f"{folder}/test_one.py"], [one.__file__])
def change():
    one.second.__code__ = (lambda: 3).__code__
for line in (2, 5, 9):
    print(judge.judge(change, one.__file__, range(line, line + 1)).partition("::")[2] or "nobody")
"""


def test_tests_judge_changes_of_lines_that_they_reach(tmp_path):
    (tmp_path / "one.py").write_text("def first():\n    return 1\n\ndef second():\n    return 2\n")
    (tmp_path / "test_one.py").write_text("import one\n\ndef test_first():\n    assert one.first() == 1\n\n"
                                          "def test_second():\n    assert one.second() == 2\n")
    done = subprocess.run([sys.executable, "-c", LINES, str(tmp_path)], cwd=files.ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["nobody", "test_second", "nobody"], done.stderr


#: Changes of every part of the accelerator with one context, and some of its tests.
FEW = """
import sys
from tests.cosim.accelerator.built import ACCELERATOR
from tests.mutate import __main__, emitted, parts
test = "tests/rtl/accelerator/test_accelerator.py::test_"
parts.DESIGNS["one context"] = emitted.Emitted("accelerator", ACCELERATOR, *(test + name for name in (
    "what_is_wrong_has_its_cause_and_number", "transfers_are_those_of_the_golden_machine",
    "random_programs_are_those_of_the_golden_machine", "memory_may_lie_at_any_address", "bus_errors")))
sys.exit(__main__.main(sys.argv[1:]))
"""


#: Parts that are judged in longer tests.
LONG = [name for name, part in PARTS.items() if {"programs", "pods"} & set(part.designs)]


@pytest.mark.cosim
@pytest.mark.parametrize("parts", [
    [name for name in PARTS if "dispatched" not in name and name not in ("lowering", *LONG)],
    pytest.param(LONG, marks=pytest.mark.slow)], ids=["some", "others"])
def test_some_changes_of_every_part_are_seen(tmp_path, parts):
    out = tmp_path / "found.json"
    done = subprocess.run([sys.executable, "-c", FEW, *parts, "--count", "1", "--json", str(out)], cwd=files.ROOT,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["parts"]
    assert list(rows) == parts and all(row["changes"] == 1 for row in rows.values())
    assert sum(row["seen"] for row in rows.values()) > len(parts) / 2, done.stdout
