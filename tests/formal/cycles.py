"""Several cycles of a component in a row, from any state, for laws that span them."""

import re
from types import SimpleNamespace

import z3
from amaranth.hdl import Value
from amaranth.lib.wiring import In

from tests.formal.prove import REGISTERS, Step, answer, model


def _fields(text):
    """The parts of a state, the uppermost first: their names, bits, and which bits of a signal they are."""
    found = re.findall(r"^\(define-fun (\|\w+#\d+\|) \(\(state \|\w+\|\)\) (?:Bool \(= )?(?:\(_ BitVec \d+\) )?"
                       r"\(\(_ extract (\d+) (\d+)\) state\).* ; \\(\S+)(?: \[(\d+)(?::(\d+))?\])?$",
                       text, re.MULTILINE)
    return [(name, int(high) - int(low) + 1, (signal, int(first or 0), int(last or first or 0)))
            for name, high, low, signal, first, last in sorted(found, key=lambda field: -int(field[1]))]


def function(component, name):
    """A component without a clock as a function of its inputs: SMT-LIB that defines it, and z3's, by their names.

    Its one output is ``o``.
    """
    text = re.sub(r"\|top(?=[_#])", f"|{name}", model(component, name))
    sizes = {port: len(Value.cast(getattr(component, port))) for port in component.signature.members}
    inputs = [port for port, member in component.signature.members.items() if member.flow == In]
    arguments = " ".join(f"(|{name} {port}| (_ BitVec {sizes[port]}))" for port in inputs)
    parts = " ".join(f"((_ extract {low + bits - 1} {low}) |{name} {port}|)"
                     for _, bits, (port, _, low) in _fields(text))
    text += f"\n(define-fun {name} ({arguments}) (_ BitVec {sizes['o']}) (|{name}_n o| (concat {parts} #b1)))\n"
    made = z3.Function(name, *(z3.BitVecSort(sizes[port]) for port in [*inputs, "o"]))
    return text, lambda **values: made(*(values[port] for port in inputs))


class Cycles(Step):
    """Cycles of a component, from any state and for all inputs in each; there is no reset in any of them.

    Attributes
    ----------
    at : list of namespace
        Signals in each cycle, as those of a :class:`~tests.formal.prove.Step`.
    """

    @classmethod
    def of(cls, component):
        """Those of any component, also of one that only tests have; errors as of :func:`tests.formal.prove.smt`."""
        return cls(model(component, type(component).__name__, REGISTERS))

    def run(self, count):
        """So many cycles; the component itself."""
        found = re.findall(r"\(define-fun \|top_n (\S+)\| \(\(state \|top_s\|\)\) (Bool|\(_ BitVec (\d+)\))",
                           self._model)
        lines, self.at = [self._model], []
        for cycle in range(count):
            lines += self._state(cycle)
            lines += [f"(define-fun |at{cycle} {name}| () {sort} (|top_n {name}| c{cycle}))" for name, sort, _ in found]
            if any(name == "rst" for name, _, _ in found):
                lines.append(f"(assert (not |at{cycle} rst|))")
            self.at.append(SimpleNamespace(**{
                name: z3.BitVec(f"at{cycle} {name}", int(bits)) if bits else z3.Bool(f"at{cycle} {name}")
                for name, _, bits in found}))
        self._text = "\n".join([*lines, ""])
        return self

    def _state(self, cycle):
        """Text that defines the state of a cycle: what is an input, or a register in the first cycle, is anything.

        A register is the expression of the state before, and not a number of which an equation says that it is equal:
        a solver then sees where two products are of the same operands.
        """
        steps = re.search(r"\|top_t\| .*?\(and\n(.*?)^\)\)|\|top_t\|", self._model, re.MULTILINE | re.DOTALL)[1] or ""
        after = {name: value for value, name in re.findall(
            r"^  \(= (.*) \((\|top#\d+\|) next_state\)\) ;", steps, re.MULTILINE)}
        if len(after) < steps.count("\n"):
            raise ValueError("a register has its next value in parts")
        lines, parts = [], []
        for name, bits, _ in _fields(self._model):
            if cycle and name in after:
                parts.append(after[name].replace(" state)", f" c{cycle - 1})"))
            else:
                parts.append(f"|c{cycle} {name[1:-1]}|")
                lines.append(f"(declare-const {parts[-1]} (_ BitVec {bits}))")
        return [*lines, f"(define-fun c{cycle} () |top_s| (concat {' '.join(parts)} #b1))"]

    def law(self, law, seconds=300, definitions=""):
        """Whether a law of :attr:`at` holds, in which there may be functions of some definitions.

        Raises
        ------
        TimeoutError
            If the solver gives no answer within ``seconds``.
        """
        found = answer(f"{definitions}\n{self._text}(assert (not {z3.simplify(law).sexpr()}))", seconds)
        if found == "unknown":
            raise TimeoutError(f"no answer within {seconds} s")
        return found == "unsat"
