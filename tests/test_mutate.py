"""Changes of a module, one place each: which there are, and what is said of one that no test sees."""

import ast
import json

import pytest

from tests import mutate

TEXT = '''"""No change here: 1 + 2."""
WIDTH = 1 + 2


class Part:
    def body(self, m, a, b):
        """Nor here."""
        with m.If(a & b):
            m.d.sync += self.o.eq(Mux(a == 3, a + b, ~b))
'''


def test_changes_are_one_place_each():
    found = mutate.mutants(TEXT)
    assert [(each.line, each.before, each.after) for each in found] == [
        (8, "m.If(a & b)", "(m.If(a & b == 0))"), (8, "a & b", "(a | b)"),
        (9, "self.o.eq(Mux(a == 3, a + b, ~b))", "[]"),
        (9, "Mux(a == 3, a + b, ~b)", "(Mux(a == 3, ~b, a + b))"), (9, "a == 3", "(a != 3)"), (9, "a + b", "(a - b)"),
        (9, "~b", "(b)"), (9, "3", "4")]
    for each in found:
        assert ast.parse(each.text) and len(each.text) - len(TEXT) == len(each.after) - len(each.before)


def test_verdicts(tmp_path, capsys, monkeypatch):
    """A queue that hands on wrongly is seen; one that could count further than it does is not."""
    every, out = mutate.mutants, tmp_path / "found.json"

    def some(text):
        lines = text.splitlines()
        return [each for each in every(text) if each.before == "self.i.valid & self.i.ready" or (
            each.before == "1" and lines[each.line - 1].lstrip().startswith("behind = Signal(range("))]
    monkeypatch.setattr(mutate, "mutants", some)
    assert mutate.main(["rtl/lib/fifo.py", "--json", str(out)]) == 1
    (rows,) = json.loads(out.read_text()).values()
    assert [each["verdict"] for each in rows] == [mutate.SURVIVED, mutate.SEEN]
    assert f"rtl/lib/fifo.py:{rows[0]['line']}: 1  ->  2" in capsys.readouterr().out


def test_what_cannot_be_judged():
    assert mutate.tests_of("rtl/accelerator/writer.py") == ["tests/rtl/accelerator/test_accelerator.py"]
    with pytest.raises(SystemExit):
        mutate.main(["rtl/none.py"])
