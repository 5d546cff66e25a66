"""Proves laws of components for all inputs: Yosys writes SMT-LIB, a solver decides.

Bitwuzla is by far the quicker; its floating point knows only the formats of 16, 32 and 64 bits, so
laws about smaller ones go to z3.
"""

import re
from dataclasses import dataclass, field
from types import SimpleNamespace

import bitwuzla
import z3
from amaranth.back import rtlil
from amaranth.hdl import Value
from amaranth.lib.wiring import In

from gen.emit import Emitter, netlists
from hbfp import files
from tests import yosys

#: Bits of what narrow laws are of, which are asked first, since a solver is quick with them.
_NARROW = 64
#: Bits from which on a law is asked by itself: with others it takes a solver far longer.
_WIDE = 250
#: Passes after which memories are registers.
REGISTERS = "opt_clean; memory_collect; memory_map; opt; dffunmap; opt_clean"


def smt(component, name):
    """SMT-LIB text that defines every port of ``component`` as a bit vector of its name."""
    lines = [model(component, name), "(declare-const state |top_s|)"]
    for port in component.signature.members:
        width = len(Value.cast(getattr(component, port)))
        value = f"(|top_n {port}| state)"
        # One-bit ports are written as Bool.
        value = f"(ite {value} #b1 #b0)" if width == 1 else value
        lines.append(f"(define-fun {port} () (_ BitVec {width}) {value})")
    return "\n".join(lines)


def model(component, name, passes="opt_clean"):
    """SMT-LIB text of ``component`` by Yosys: its states, its outputs, and its steps if it has a clock."""
    return _written(rtlil.convert(component, name="top", emit_src=False), "top", name, passes)


def _written(text, top, name, passes):
    """SMT-LIB text of RTLIL, by Yosys."""
    with files.scratch() as folder:
        (folder / "top.il").write_text(text)
        script = (f"read_rtlil top.il; hierarchy -top {top}; rename {top} top; proc; flatten; {passes}; "
                  "write_smt2 -stbv -wires top.smt2")
        try:
            yosys.run(folder, script)
        except RuntimeError as error:
            raise RuntimeError(f"{name}: {error}") from None
        return (folder / "top.smt2").read_text()


def reachable(component, name, port, steps, seconds=600):
    """Whether an output can be high within ``steps`` cycles, for any inputs in any cycle.

    Parameters
    ----------
    component : Component
        With a clock; it starts from the initial values of its registers, and its memories are registers.
    name : str
        Of what is asked, for messages.
    port : str
        The output, one bit.
    steps, seconds : int
        Cycles, and the limit of the solver.

    Raises
    ------
    TimeoutError
        If the solver gives no answer within ``seconds``.
    """
    lines = [model(component, name, REGISTERS)]
    for step in range(steps + 1):
        lines += [f"(declare-const s{step} |top_s|)", f"(assert (not (|top_n rst| s{step})))",
                  f"(assert (|top_t| s{step - 1} s{step}))" if step else "(assert (|top_i| s0))"]
    lines.append("(assert (or " + " ".join(f"(|top_n {port}| s{step})" for step in range(steps + 1)) + "))")
    found = answer("\n".join(lines), seconds)
    if found == "unknown":
        raise TimeoutError(f"no answer for {name} within {seconds} s")
    return found == "sat"


@dataclass
class Laws:
    """What a component does in one cycle, about a :class:`Step`.

    Attributes
    ----------
    laws : dict of str to z3.BoolRef
        Of steps that are no reset; a reset leads to the first state.
    always : dict of str to z3.BoolRef
        What holds in every state that is reached, of ``now``; to be proved, too, by induction.
    given : list of z3.BoolRef
        What inputs keep to.
    kept : tuple of str, or None
        Registers that a reset leaves as they are, beside memories. None: it is not asked what each register is after
        a reset, only that what always holds does then.
    alone : bool
        Whether each law is asked by itself: of exact numbers, where together they take a solver far longer.
    """
    laws: dict
    always: dict = field(default_factory=dict)
    given: list = field(default_factory=list)
    kept: tuple | None = ()
    alone: bool = False


class _Hollow(Emitter):
    """Leaves out what is in cells of some kinds, which are not even elaborated: nothing drives their outputs."""

    def __init__(self, kinds):
        super().__init__()
        self._kinds = kinds

    def convert(self, cell):
        if not isinstance(cell, self._kinds):
            return super().convert(cell)
        name, lines = cell.module, []
        for place, (path, member, value) in enumerate(cell.signature.flatten(cell)):
            way, bits = "input" if member.flow == In else "output", len(Value.cast(value))
            # Yosys forgets the name of an input that nothing reads, unless it is told to keep it.
            lines += ["  attribute \\keep 1", f"  wire width {bits} {way} {place} \\{'__'.join(map(str, path))}"]
        self.cells[name], self.uses[name] = cell, {}
        self.texts[name] = "\n".join([f"module \\{name}", *lines, "end", ""])
        return name


class Step:
    """One cycle of a component, from any state and for all inputs, for laws that z3's expressions state.

    Parameters
    ----------
    text : str
        SMT-LIB of the component by Yosys, its module named ``top``.

    Attributes
    ----------
    now, then : namespace
        Signals in the cycle, and in the one after it, as Booleans or bit vectors; those of what is inside as
        ``part.signal``.
    """

    def __init__(self, text):
        found = re.findall(r"\(define-fun \|top_n (\S+)\| \(\(state \|top_s\|\)\) (Bool|\(_ BitVec (\d+)\))", text)
        self._model, self._kinds = text, dict((name, kind) for kind, name in re.findall(
            r"^; yosys-smt2-(input|output|register) (\S+)", text, re.MULTILINE))
        lines = [text, "(declare-const s0 |top_s|) (declare-const s1 |top_s|)(assert (|top_t| s0 s1))"]
        for state, when in (("s0", "now"), ("s1", "then")):    # `push` alone is a word of SMT-LIB
            lines += [f"(define-fun |{when} {name}| () {sort} (|top_n {name}| {state}))" for name, sort, _ in found]
        self._text = "\n".join([*lines, ""])
        self.now, self.then = (SimpleNamespace(**{
            name: z3.BitVec(f"{when} {name}", int(bits)) if bits else z3.Bool(f"{when} {name}")
            for name, _, bits in found}) for when in ("now", "then"))
        begin = re.search(r"\|top_i\|.*?^\)\)", text, re.MULTILINE | re.DOTALL)
        self._begin = {name: value for value, name in re.findall(
            r" (\S+)\) ; (\S+)$", begin[0] if begin else "", re.MULTILINE)}

    @classmethod
    def of(cls, component, hollow=()):
        """The cycle of a component; memories are registers. Parts in it have the names of their ports.

        Parts of the kinds ``hollow`` have ports alone: what they give is anything, in every cycle.
        """
        emitter = _Hollow(tuple(hollow))
        top = emitter.convert(component)
        return cls(_written("\n".join(netlists(emitter)), top, top, REGISTERS))

    def is_input(self, name):
        """Whether a signal is an input."""
        return self._kinds.get(name) == "input"

    def _asked(self, laws):
        """What is asked: SMT-LIB of what is assumed, and of each law by its name."""
        after = [(getattr(self.now, name), getattr(self.then, name)) for name in vars(self.now)]
        always = {name: z3.substitute(law, *after) for name, law in laws.always.items()}
        steps = laws.laws | {f"always: {name}": law for name, law in always.items()}
        assumed = "".join(f"(assert {_text(law)})" for law in [
            z3.Not(self.now.rst), *laws.given, *laws.always.values()])
        texts, widths = ({name: find(law) for name, law in steps.items()} for find in (_text, _widest))
        edges = () if laws.alone else ((-1, _NARROW), (_NARROW, _WIDE))
        asked = [*((assumed, {name: text for name, text in texts.items() if low < widths[name] <= high})
                   for low, high in edges),
                 *((assumed, {name: text}) for name, text in texts.items() if laws.alone or widths[name] > _WIDE),
                 ("(assert (|top_i| s0))", {f"first: {name}": _text(law) for name, law in laws.always.items()}),
                 ("(assert |now rst|)", {f"reset: {name}": _text(law) for name, law in always.items()}
                  if laws.kept is None else {
                      f"reset: {name}": f"(= |then {name}| {value})" for name, value in self._begin.items()
                      if name not in laws.kept and "memory." not in name})]
        return [(assumed, these) for assumed, these in asked if these]

    def holds(self, laws, seconds=60):
        """Whether all laws hold.

        Raises
        ------
        TimeoutError
            If the solver gives no answer within ``seconds``.
        """
        return all(self._hold(*asked, seconds) for asked in self._asked(laws))

    def broken(self, laws, seconds=60):
        """Names of the laws that do not hold; errors as of :meth:`holds`."""
        return [name for assumed, these in self._asked(laws) if not self._hold(assumed, these, seconds)
                for name, law in these.items() if not self._hold(assumed, {name: law}, seconds)]

    def same(self, other, always, seconds=60):
        """Whether another step has the same outputs and next values of registers from every state of which laws hold.

        Both begin alike; so it is the same component, if the laws always hold in one of the two.
        """
        if self._begin != other._begin or self._kinds != other._kinds:
            return False
        text = re.sub(r"\|top(?=[_#])", "|other", other._model)
        before = [name for name, kind in self._kinds.items() if kind != "output"]
        alike = "(= (|top_n {0}| s{1}) (|other_n {0}| o{1}))".format
        same = [alike(name, 0) for name in self._kinds] + [alike(name, 1) for name in self._begin]
        return self._hold("".join([
            text, "(declare-const o0 |other_s|)(declare-const o1 |other_s|)(assert (|other_t| o0 o1))",
            *(f"(assert {alike(name, 0)})" for name in before),
            *(f"(assert {_text(law)})" for law in always.values())]), dict(enumerate(same)), seconds, False)

    def _hold(self, assumed, laws, seconds, strict=True):
        broken = " ".join(f"(not {law})" for law in laws.values())
        found = answer(f"{self._text}{assumed}(assert (or false {broken}))", seconds)
        if strict and found == "unknown":
            raise TimeoutError(f"no answer for {', '.join(laws)} within {seconds} s")
        return found == "unsat"


def _widest(law):
    """Bits of the widest bit vector in a law."""
    most, seen, left = 0, set(), [law]
    while left:
        term = left.pop()
        if term.get_id() not in seen:
            seen.add(term.get_id())
            most = max(most, term.size() if z3.is_bv(term) else 0)
            left += term.children()
    return most


def _text(law):
    """A law as SMT-LIB, in which nothing is an `or` of one, as z3 may write."""
    return z3.simplify(law).sexpr()


def proved(component, name, law, definitions="", seconds=300, solver="bitwuzla"):
    """Whether ``law`` holds for all inputs of ``component``.

    Parameters
    ----------
    component : Component
        Combinational; its ports are bit vectors in ``law``.
    name : str
        Stem of the file under build/formal that says what is asked.
    law, definitions : str
        SMT-LIB: a Boolean term, and commands before it.
    seconds : int
        Limit.
    solver : str
        ``bitwuzla`` or ``z3``.

    Raises
    ------
    TimeoutError
        If the solver gives no answer within ``seconds``.
    """
    text = f"{smt(component, name)}\n{definitions}\n(assert (not {law}))\n"
    files.write(files.build() / "formal" / f"{name}_law.smt2", text)
    found = {"bitwuzla": answer, "z3": _z3}[solver](text, seconds)
    if found == "unknown":
        raise TimeoutError(f"no answer for {name} within {seconds} s")
    return found == "unsat"


def answer(text, seconds):
    """What Bitwuzla says of SMT-LIB text within some seconds: ``sat``, ``unsat`` or ``unknown``."""
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, seconds * 1000)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(text, True, False)
    names = {bitwuzla.Result.UNSAT: "unsat", bitwuzla.Result.SAT: "sat"}
    return names.get(parser.bitwuzla().check_sat(), "unknown")


def _z3(text, seconds):
    solver = z3.SolverFor("QF_BVFP")
    solver.set("timeout", seconds * 1000)
    solver.from_string(text)
    return str(solver.check())
