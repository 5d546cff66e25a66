"""``python -m flow``: one design from parameters to proven and measured Verilog."""

if __name__ == "__main__":
    from hbfp import loading

    loading.watch("flow")    # before all that takes a while to load

import json
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

EXAMPLES = """\
examples:
  python -m flow                                  the default design, 32 x 32
  python -m flow --mantissa 4 --rows 16 --block 1,16
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
        With its status, if it has refused its input, in its own words, or was interrupted.
    """
    console.rule(f"{title}: python -m {module} {' '.join(words)}", align="left", style="dim")
    start = time.monotonic()
    status = subprocess.run([sys.executable, "-m", f"hbfp.{module}", *words]).returncode
    if status in (BAD_INPUT, INTERRUPTED):
        raise SystemExit(status)
    if status:
        raise StepError(f"{title}: python -m {module} {' '.join(words)} ended with status {status}")
    console.print(f"[dim]{time.monotonic() - start:.1f} s[/dim]")
    return json.loads(Path(result).read_text())


def pictures(folder, manifest):
    """What the steps drew: the reports' pictures and those of the co-simulation."""
    return sorted([*folder.glob("*.png"), *folder.glob("*.html"),
                   *(folder.parent / "cosim" / manifest.top).glob("*.png")])


def no_accelerator(design):
    """Why no accelerator has such a core, in one line; None if one can have it."""
    try:
        Accelerator(core=design)
    except ConflictError as error:
        return str(error)
    return None


def network_row(network):
    """What the closing table says of a network on the accelerator: ``network`` is the run's results, or why not."""
    if isinstance(network, str):
        return "network on the accelerator", f"none: {network}"
    compared, differ = f"{network['compared']:,} numbers compared with PyTorch", f"{network['mismatches']:,} differ"
    cycles = f"{network['cycles']:,} cycles, {network['utilisation']:.1%} of the array"
    return "network on the accelerator", f"{network['model']}: {compared}, {differ}; {cycles}"


def summarise(folder, manifest, cosim, synth, network):
    """Rows of the closing table: what, and how much."""
    compared = sum(outcome["compared"] for outcome in cosim["outcomes"])
    mismatches = sum(outcome["mismatches"] for outcome in cosim["outcomes"])
    cycles = sum(outcome["cycles"] for outcome in cosim["outcomes"])
    report, ratios = synth["report"], synth["ratios"].get("fp32", {})
    unit = "NAND2-equivalents" if report["library"] else "NAND2-equivalents (generic gates)"
    rows = [("files written", f"{folder / manifest.verilog}, {folder / FILE}"),
            ("cycles simulated", f"{cycles:,}"), ("outputs compared", f"{compared:,}"),
            ("mismatches", f"{mismatches:,}"),
            ("core, a MAC", (f"{report['scopes']['core']:.0f} {unit}, memories and side unit apart; "
                             f"{report['design']['multiplier']} multipliers"))]
    if ratios:
        rows.append(("FP32 core / this core", f"{ratios['core']:.2f} x (elements alone {ratios['element']:.2f} x)"))
    reports = ["cosim.json", "synth.json", "synth.csv", *(["network.json"] if isinstance(network, dict) else [])]
    rows += [network_row(network), ("reports", ", ".join(str(folder / name) for name in reports)),
             ("pictures", ", ".join(str(path) for path in pictures(folder, manifest)) or "none")]
    return rows


def make_parser():
    """The command line."""
    parser = Parser(prog="python -m flow", epilog=EXAMPLES,
                    description="Generate Verilog, compare it with the golden model on a real workload, measure it, "
                                "and run a network on the accelerator around it.")
    add_design_options(parser)
    return parser


def prepare(words, args):
    """From parsed arguments, and the words they were read from, to the work; OptionError if one is not valid."""
    design = design_from_args(args)
    return partial(work, words, design, writable_folder("out", files.output(design.name)))


def work(words, design, folder):
    """All steps, and what came out in one table."""
    console = Console()
    manifest = Manifest.from_dict(run_step(console, "Generate", "gen", [*words, "--out", str(folder)], folder / FILE))
    cosim = run_step(console, "Co-simulate", "cosim",
                     [*words, "--bench", "workload", "--json", str(folder / "cosim.json")], folder / "cosim.json")
    synth = run_step(console, "Measure", "synth", [*words, "--out", str(folder)], folder / "synth.json")
    network = no_accelerator(design)
    if network is None:
        network = run_step(console, "Run a network", "cosim",
                           ["run", NETWORK, *words, "--check", "layers", "--timeline", str(folder / "network.png"),
                            "--json", str(folder / "network.json")], folder / "network.json")
    table = Table(title=f"{design.name}, {design.rows} x {design.cols}", show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in summarise(folder, manifest, cosim, synth, network):
        table.add_row(*row)
    console.print(table)


def main(argv=None):
    """Run the job; return its exit status."""
    need("amaranth", "cocotb", "torch")
    words = list(sys.argv[1:] if argv is None else argv)
    return run(make_parser(), partial(prepare, words), words, {StepError: 1})


if __name__ == "__main__":
    sys.exit(main())
