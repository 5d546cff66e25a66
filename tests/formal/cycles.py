"""Several cycles of a component in a row, from any state, for laws that span them."""

import re
from types import SimpleNamespace

import z3
from amaranth.hdl import Value
from amaranth.lib.wiring import In

from tests.formal.prove import REGISTERS, Step, answer, model
from tests.formal.views import number


def _fields(text):
    """The parts of a state, the uppermost first: their names and bits."""
    found = re.findall(r"^\(define-fun (\|top#\d+\|) \(\(state \|top_s\|\)\) (?:Bool \(= )?(?:\(_ BitVec \d+\) )?"
                       r"\(\(_ extract (\d+) (\d+)\) state\)", text, re.MULTILINE)
    return [(name, int(high) - int(low) + 1) for name, high, low in sorted(found, key=lambda field: -int(field[1]))]


class Hollow:
    """A part that is hollow, as a function of its inputs of which nothing is known.

    Parameters
    ----------
    name : str
        Of the function.
    part : Component
        One like the parts, with one output, ``o``.
    late : dict of str to int
        Cycles from the first inputs to others, and to the output; the same cycle, unless named.
    """

    def __init__(self, name, part, **late):
        part._MustUse__used = True    # or Amaranth warns of what nobody elaborates
        self.sizes = {port: len(Value.cast(getattr(part, port))) for port in part.signature.members}
        self.inputs, self.late = [port for port, member in part.signature.members.items() if member.flow == In], late
        sorts = [self.sizes[port] for port in [*self.inputs, "o"]]
        self.definition = (f"(declare-fun {name} ({' '.join(f'(_ BitVec {bits})' for bits in sorts[:-1])}) "
                           f"(_ BitVec {sorts[-1]}))")
        self._function = z3.Function(name, *map(z3.BitVecSort, sorts))

    def __call__(self, **values):
        return self._function(*(values[port] for port in self.inputs))

    def assumed(self, at, paths):
        """That the parts at some paths are this function, in all cycles."""
        def seen(path, port, cycle):
            return vars(at[cycle + self.late.get(port, 0)])[f"{path}.{port}"]
        return [seen(path, "o", cycle) == self(**{
                    port: number(seen(path, port, cycle), self.sizes[port]) for port in self.inputs})
                for path in paths for cycle in range(len(at) - max(self.late.values(), default=0))]


class Cycles(Step):
    """Cycles of a component, from any state and for all inputs in each; there is no reset in any of them.

    Attributes
    ----------
    at : list of namespace
        Signals in each cycle, as those of a :class:`~tests.formal.prove.Step`.
    """

    @classmethod
    def of(cls, component, hollow=()):
        """Those of any component, also of one that only tests have; errors as of :func:`tests.formal.prove.smt`.

        Parts of the kinds ``hollow`` have ports alone.
        """
        return super().of(component, hollow) if hollow else cls(model(component, type(component).__name__, REGISTERS))

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
        for name, bits in _fields(self._model):
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
