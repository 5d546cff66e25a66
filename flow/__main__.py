"""``python -m flow``: one design from parameters to proven and measured Verilog."""

import json
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from golden.spec.options import OptionError, Parser, add_design_options, design_from_args

EXAMPLES = """\
examples:
  python -m flow                                  the default design, 32 x 32
  python -m flow --mantissa 4 --rows 16 --block 1,16
"""


class StepError(RuntimeError):
    """A step failed; it has said why."""


def run_step(console, title, module, words, result):
    """Run ``python -m module``; return the JSON that it wrote to ``result``."""
    console.rule(f"{title}: python -m {module}", align="left")
    start = time.monotonic()
    status = subprocess.run([sys.executable, "-m", module, *words]).returncode
    if status:
        raise StepError(f"{title} failed: python -m {module} {' '.join(words)} ended with status {status}")
    console.print(f"[dim]{time.monotonic() - start:.1f} s[/dim]")
    return json.loads(Path(result).read_text())


def main(argv=None):
    """Run the job; return its exit status."""
    parser = Parser(prog="python -m flow", epilog=EXAMPLES,
                    description="Generate Verilog, compare it with the golden model on a real workload, report its area.")
    add_design_options(parser)
    args, design_words = parser.parse_args(argv), list(sys.argv[1:] if argv is None else argv)
    try:
        design = design_from_args(args)
    except OptionError as error:
        parser.error(str(error))
    console = Console()
    folder = Path("build") / design.name
    folder.mkdir(parents=True, exist_ok=True)
    try:
        manifest = run_step(console, "Generate", "gen", [*design_words, "--out", str(folder)],
                            folder / "manifest.json")
        cosim = run_step(console, "Co-simulate", "cosim",
                         [*design_words, "--bench", "workload", "--json", str(folder / "cosim.json")],
                         folder / "cosim.json")
        synth = run_step(console, "Measure", "synth", [*design_words, "--out", str(folder)], folder / "synth.json")
    except StepError as error:
        print(error, file=sys.stderr)
        return 1
    summary = summarise(design, folder, manifest, cosim, synth)
    table = Table(title=f"{design.name}: {design.rows} x {design.cols}", show_header=False)
    for row in summary:
        table.add_row(*row)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
