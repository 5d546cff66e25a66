"""Parts of a core that have a bench of their own, and the run of one bench as an outcome."""

from hbfp.design import Design
from hbfp.values import choice, refuse

from ..manifest import Manifest
from .comparison import Comparison
from .corners import unreachable
from .outcome import Outcome

#: Unit of the generator -> module with its cocotb tests.
BENCHES = {unit: f"hbfp.cosim.bench.units.{unit}" for unit in ("core", "array", "align", "encode", "encode_lane")}


def check_unit(unit: str, design: Design) -> None:
    """Raise :class:`~hbfp.values.OptionError` if there is no bench for this unit of this design."""
    choice("unit", unit, BENCHES)
    if unit == "array" and not design.integer:
        raise refuse("unit", unit, f"must be of integers, not --arithmetic {design.arithmetic}")
    if unit == "array" and design.takes_sparse:
        raise refuse("unit", unit, "must be of dense weights, not --sparse {},{}: its bench has no indices".format(
            *design.sparse))


def bench_outcome(manifest: Manifest, unit: str = "core", seed: int = 1, name: str | None = None) -> Outcome:
    """Run the bench of a unit; tests that found wrong bits count as mismatches, and every failed test fails it."""
    from .runner import run_bench
    result = run_bench(manifest, BENCHES[unit], seed=seed)
    failures = [f"{test}: {message}" for test, message in result.failures]
    if not result.ran:
        failures.append(f"no test ran; see {result.log}")
    return Outcome(name or unit, Comparison(result.compared, result.wrong), failures=failures, corners=result.corners,
                   unreachable=unreachable(manifest.design, unit),
                   notes={"tests": result.ran, "failed": result.failed, "log": str(result.log), "top": manifest.top,
                          "netlist": manifest.data.netlist})
