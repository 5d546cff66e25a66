"""The programs that lay out, which Debian has: GrayWolf places, qrouter routes, qflow's scripts convert."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ..tools.errors import SynthError

#: Debian packages of all of it.
PACKAGES = ("graywolf", "qrouter", "qflow", "qflow-tech-osu018")
#: Scripts in Tcl; geometry and rules of OSU018.
SCRIPTS, TECHNOLOGY = Path("/usr/lib/qflow/scripts"), Path("/usr/share/qflow/tech/osu018")
LEF = TECHNOLOGY / "osu018_stdcells.lef"


def check() -> None:
    """SynthError unless all is there."""
    there = {"graywolf": shutil.which("graywolf"), "qrouter": shutil.which("qrouter"), "qflow": SCRIPTS.is_dir(),
             "qflow-tech-osu018": LEF.is_file()}
    if lacking := [name for name in PACKAGES if not there[name]]:
        raise SynthError(f"Laying out needs the Debian packages {' '.join(PACKAGES)}, of which {' '.join(lacking)} "
                         "cannot be found: apt install them")


def run(words: Sequence[str | Path], folder: Path, makes: str) -> None:
    """Run a program in a folder, where it must write a file.

    Raises
    ------
    SynthError
        If it fails, or the file is not there; the message ends with the log's path.
    """
    log = folder / f"{Path(words[0]).stem}.log"
    with log.open("w") as out:
        done = subprocess.run([str(word) for word in words], cwd=folder, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.STDOUT)
    if done.returncode or not (folder / makes).exists():
        raise SynthError(f"{Path(words[0]).name} wrote no {makes}, exit status {done.returncode} (log: {log})")
