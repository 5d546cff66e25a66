"""Speed of co-simulation: first build, later starts, simulated multiply-accumulates a second.

    python -m benchmarks.cosim_speed                    the default design, 32 x 32
    python -m benchmarks.cosim_speed --rows 16 --rebuild

Wall time is what a user waits; processor time is what the single simulating thread used, and what wall time becomes on
a machine that does nothing else. ``--rebuild`` builds the model anew beside the cache.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hbfp.command import Parser
from hbfp.options import add_design_options, design_from_args
from hbfp.values import OptionError

ROOT = Path(__file__).parents[1]


def _design_words(argv):
    return [word for word in argv if word != "--rebuild"]


def _timed(words, env):
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "cosim", *words], cwd=ROOT, env=env, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main(argv=None):
    """Measure and print; return the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    parser = Parser(prog="python -m benchmarks.cosim_speed", description=__doc__)
    add_design_options(parser)
    parser.add_argument("--rebuild", action="store_true", help="also measure the first build")
    args = parser.parse_args(argv)
    try:
        design = design_from_args(args)
    except OptionError as error:
        print(f"{parser.prog}: error: {error}", file=sys.stderr)
        return 2
    words = [*_design_words(argv), "--bench", "workload", "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ)
        if args.rebuild:
            env["HBFP_BUILD"] = folder
            print(f"first run, build included     {_timed(words, env):9.1f} s wall")
        else:
            _timed(words, env)
        print(f"later run, start to end       {_timed(words, env):9.1f} s wall")

    from cosim.emit import emit
    from cosim.simulate.simulation import Simulation
    from cosim.work.device import Core
    from cosim.work.network import workload

    began = time.perf_counter()
    core = Core(Simulation(emit(design)))
    print(f"opening a cached model        {time.perf_counter() - began:9.2f} s wall")
    workload(core)
    outcome, _ = workload(core)
    notes = outcome.notes
    for what, seconds in (("products", "seconds_products"), ("products and conversions", None)):
        wall = notes[seconds] if seconds else outcome.seconds
        used = notes["cpu_" + seconds] if seconds else notes["cpu_seconds"]
        print(f"workload, {what:<25}{outcome.macs / wall / 1e6:9.1f} million MAC/s wall, "
              f"{outcome.macs / used / 1e6:.1f} million MAC/s of processor time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
