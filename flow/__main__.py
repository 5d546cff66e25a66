"""``python -m flow``: one design from parameters to proven and measured Verilog; ``figures``: what pages say of it."""

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("flow")    # before all that takes a while to load

import json
import os
import shlex
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from hbfp import files
from hbfp.command import BAD_INPUT, INTERRUPTED, Parser, run
from hbfp.design import ConflictError
from hbfp.extras import need
from hbfp.manifest import FILE, Manifest
from hbfp.options import add_design_options, design_from_args
from hbfp.system import Accelerator
from hbfp.values import writable_folder

from . import figures

EXAMPLES = """\
examples:
  python -m flow                                  the default design, 32 x 32
  python -m flow --mantissa 4 --rows 16 --block 1,16
  python -m flow figures --help                   figures on the pages, from data
"""


#: The network of the last step, a name of the zoo.
NETWORK = "mlp"


class StepError(RuntimeError):
    """A step failed; it has said why."""


def run_step(console, title, module, words, result):
    """Run ``python -m module`` in sight of the user; return the JSON that it wrote to ``result``.

    Raises
    ------
    StepError
        If it fails.
    SystemExit
        If it has refused its input, in its own words, or was interrupted: with its status.
    """
    console.rule(title, align="left", style="dim")
    console.print(f"python -m {module} {shlex.join(words)}", style="dim", markup=False, highlight=False, soft_wrap=True)
    start = time.monotonic()
    status = subprocess.run([sys.executable, "-m", f"hbfp.{module}", *words],
                            env=os.environ | {"COLUMNS": str(console.width)}).returncode
    if status in (BAD_INPUT, INTERRUPTED):
        raise SystemExit(status)
    if status:
        raise StepError(f"{title}: python -m {module} {' '.join(words)} ended with status {status}")
    console.print(f"[dim]{time.monotonic() - start:.1f} s[/dim]")
    return json.loads(Path(result).read_text())


def no_accelerator(design):
    """Why no accelerator has such a core, in one line; None if one can have it."""
    try:
        Accelerator(core=design)
    except ConflictError as error:
        return str(error)
    return None


def core_rows(cosim):
    """Rows of the core's table, what and how much: ``cosim`` are the results of its co-simulation."""
    rows = {"cycles": "cycles simulated", "compared": "outputs compared with the golden model",
            "mismatches": "outputs that differ"}
    return [(text, f"{sum(outcome[name] for outcome in cosim['outcomes']):,}") for name, text in rows.items()]


def network_rows(network):
    """Rows of a network on the accelerator: ``network`` are the results of its run, or why there are none."""
    if isinstance(network, str):
        return [("network on the accelerator", f"none: {network}")]
    return [("network on the accelerator", network["model"]),
            ("numbers compared with PyTorch", f"{network['compared']:,}"),
            ("numbers that differ", f"{network['mismatches']:,}"),
            ("cycles", f"{network['cycles']:,}, the array multiplies in {network['utilisation']:.1%} of them")]


def area_rows(synth):
    """Rows of the area: ``synth`` is its report."""
    report, ratios = synth["report"], synth["ratios"].get("fp32", {})
    gates = "NAND2-equivalents" if report["library"] else "NAND2-equivalents of generic gates"
    rows = [("core, a multiply-accumulate", f"{report['scopes']['core']:.0f} {gates}"),
            ("multipliers", report["design"]["multiplier"]), ("not counted", "memories, side unit")]
    if ratios:
        rows += [("FP32 core over this core", f"{ratios['core']:.2f}"),
                 ("FP32 elements over these", f"{ratios['element']:.2f}")]
    return rows


def written(*paths):
    """Those of the files that are there, as a reader can copy them."""
    return [str(path.resolve()) for path in paths if path.exists()]


def tell(console, title, rows, files):
    """Print a table of what and how much, and a line for each file, however long."""
    table = Table(title=title, title_justify="left", show_header=False)
    table.add_column(max_width=38)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for file in files:
        console.print(file, markup=False, highlight=False, soft_wrap=True)


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m flow", epilog=EXAMPLES,
                    description="Generate Verilog and compare it with the golden model on a real workload; then run a "
                                "network on the accelerator around it, and measure its area.")
    add_design_options(parser)
    return parser


def prepare(words, args):
    """From parsed arguments, and the words they were read from, to the work; OptionError if one is not valid."""
    design = design_from_args(args)
    return partial(work, words, design, writable_folder("out", files.output(design.name)))


def work(words, design, folder):
    """All steps, each with what came out of it: what a reader waits for comes first, what takes minutes last."""
    console = Console()
    manifest = Manifest.from_dict(run_step(console, "Generate", "gen", [*words, "--out", str(folder)], folder / FILE))
    cosim = run_step(console, "Co-simulate", "cosim",
                     [*words, "--bench", "workload", "--json", str(folder / "cosim.json")], folder / "cosim.json")
    drawn = sorted((folder.parent / "cosim" / manifest.top).glob("*.png"))
    tell(console, f"The core, {design.rows} x {design.cols}", core_rows(cosim),
         written(folder / manifest.verilog, folder / FILE, folder / "cosim.json", *drawn))
    console.print("Next come the accelerator around it and areas, some minutes the first time. Ctrl-C leaves what is "
                  "above.")
    network = no_accelerator(design)
    if network is None:
        network = run_step(console, "Run a network", "cosim",
                           ["run", NETWORK, *words, "--check", "layers", "--timeline", str(folder / "network.png"),
                            "--json", str(folder / "network.json")], folder / "network.json")
    tell(console, "The accelerator", network_rows(network), written(folder / "network.json", folder / "network.png"))
    synth = run_step(console, "Measure", "synth", [*words, "--out", str(folder)], folder / "synth.json")
    tell(console, "All in one", [*core_rows(cosim), *network_rows(network), *area_rows(synth)],
         written(folder, folder / "synth.json", folder / "synth.csv"))


def main(argv=None):
    """Run the job, or the command that a first word names; return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["figures"]:
        return figures.main(words[1:])
    need("amaranth", "cocotb", "torch")
    return run(make_parser(), partial(prepare, words), words, {StepError: 1})


if __name__ == "__main__":
    sys.exit(main())
