"""The analytic design space: a 1-D array of systolic arrays that share one stream of activations.

``rows`` samples are a batch, ``columns`` elements a row, in arrays of w columns. In a cycle every column reads one
weight and every array one activation a row. Em is the energy of a multiply-accumulate, Ew and Ea those of a byte of
weights and of activations::

    energy a cycle = columns * bytes * Ew + rows * columns * Em + rows * (columns / w) * bytes * Ea,  times scale(GHz)
    area           = rows * columns * element + SRAM + other
    a product      = rows of X a sample * ceil(K * N / columns) + rows + w + 32 cycles

Method and published constants: :mod:`golden.perf.constants`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from hbfp.checks import check_kind, check_number, check_range
from hbfp.program import Product

from ..number.arrays import listed
from .constants import Constants

ROWS = range(1, 257)
#: Clocks that are tried, GHz.
CLOCKS = tuple(round(0.4 + 0.05 * n, 2) for n in range(17))


@dataclass(frozen=True)
class Point:
    """One design: the most columns that area and power allow for its rows and its clock; watts include static ones."""
    rows: int
    columns: int
    ghz: float
    latency_us: float
    tops: float
    watts: float
    mm2: float


def _cycles(constants: Constants, workload: Sequence[Product], rows: int, columns: int) -> int:
    """Cycles of one batch of ``rows`` samples."""
    fixed = rows + constants.array_columns + constants.step_cycles
    return sum(each.count * (each.rows * -(-each.terms * each.columns // columns) + fixed) for each in workload)


def point(constants: Constants, workload: Sequence[Product], rows: int, ghz: float) -> Point | None:
    """The largest design of so many rows at a clock, or None if not even one array fits."""
    check_kind("Constants", constants, Constants)
    workload = listed(workload, "Workload")
    for each in workload:
        check_kind("Product", each, Product)
    check_range("Rows", rows, 1, 1 << 20)
    check_number("Clock in GHz", ghz, 1e-6)
    w = constants.array_columns
    column_pj = constants.scale(ghz) * (
        constants.element_bytes * constants.weight_pj + rows * constants.mac_pj
        + rows / w * constants.element_bytes * constants.activation_pj)
    column_w, column_mm2 = column_pj * ghz * 1e-3, rows * constants.mac_um2 * 1e-6
    most = min((constants.power_w - constants.static_w) / column_w,
               (constants.area_mm2 - constants.fixed_mm2) / column_mm2)
    columns = int(most // w) * w
    if columns < w:
        return None
    latency = _cycles(constants, workload, rows, columns) / ghz * 1e-3
    tops = 2 * rows * sum(each.macs for each in workload) / latency * 1e-6
    return Point(rows, columns, ghz, latency, tops, columns * column_w + constants.static_w,
                 columns * column_mm2 + constants.fixed_mm2)


def sweep(constants: Constants, workload: Sequence[Product], rows: Iterable[int] = ROWS,
          clocks: Sequence[float] = CLOCKS) -> list[Point]:
    """Points of all rows and clocks."""
    points = (point(constants, workload, each, ghz) for each in rows for ghz in clocks)
    return [each for each in points if each]


def best(points: Iterable[Point], bound_us: float | None = None) -> Point | None:
    """The point of the highest throughput within a bound of the latency, or None if none keeps it."""
    return max((each for each in points if bound_us is None or each.latency_us <= bound_us),
               key=lambda each: (each.tops, -each.watts), default=None)


def front(points: Iterable[Point]) -> list[Point]:
    """Points that no other beats in both latency and throughput, by latency."""
    found: list[Point] = []
    for each in sorted(points, key=lambda each: (each.latency_us, -each.tops)):
        if not found or each.tops > found[-1].tops:
            found.append(each)
    return found


def as_dicts(points: Iterable[Point]) -> list[dict[str, float]]:
    """Points as plain data."""
    return [asdict(each) for each in points]
