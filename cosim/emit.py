"""Runs the generator, and the mapping of what it writes, as commands; nothing of them is imported here."""

import os
import subprocess
import sys

from hbfp import describe, files, generator
from hbfp.design import Design
from hbfp.system import Accelerator

from .manifest import Manifest


class EmitError(RuntimeError):
    """The generator refused a design; the message is its one line."""


def emit(design: Design, *, unit: str | None = None, folder: str | os.PathLike[str] | None = None) -> Manifest:
    """Emit a design, or one unit of it, below ``build/designs``.

    Parameters
    ----------
    design : Design
        What to emit.
    unit : str, optional
        A part of the core by itself, such as ``encode``.
    folder : Path, optional
        Where to; by default a folder named by the options, where an earlier result of the same generator is
        taken as it is.

    Returns
    -------
    Manifest

    Raises
    ------
    EmitError
        If the generator fails; its last line.
    """
    words = design.words() + (["--unit", unit] if unit else [])
    try:
        if folder is None:
            folder = generator.emitted(f"{unit}_{design.name}" if unit else design.name, words)
        else:
            generator.run(words, folder)
    except generator.GeneratorError as error:
        raise EmitError(f"python -m gen {' '.join(words)}: {error}") from None
    return Manifest.load(folder)


def emit_accelerator(system: Accelerator) -> Manifest:
    """Emit an accelerator below ``build/designs``, or take what the same generator wrote before.

    Raises
    ------
    EmitError
        If the generator fails; its last line.
    """
    words = ["--top", "accelerator", *describe.words(system)]
    try:
        return Manifest.load(generator.emitted(system.name, words))
    except generator.GeneratorError as error:
        raise EmitError(f"python -m gen {' '.join(words)}: {error}") from None


def emit_netlist(design: Design, recipe: str, *, unit: str = "core",
                 folder: str | os.PathLike[str] | None = None) -> Manifest:
    """Emit the mapped netlist of a design or a unit: same top, ports and manifest; below ``build/netlists``.

    Parameters
    ----------
    design : Design
    recipe : str
        A recipe of ``python -m synth netlist``, which keeps its own results.
    unit, folder
        As for :func:`emit`.

    Raises
    ------
    EmitError
        If the flow fails; its last line.
    """
    words = [*design.words(), "--unit", unit, "--recipe", recipe]
    if folder is None:
        folder = files.build() / "netlists" / f"{unit}_{design.name}-{files.key(*words)[:12]}"
    done = subprocess.run([sys.executable, "-m", "hbfp.synth", "netlist", *words, "--out", str(folder)], cwd=files.ROOT,
                          capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise EmitError(f"python -m synth netlist {' '.join(words)}: {lines[-1]}")
    return Manifest.load(folder)
