# amaranth: UnusedElaboratable=no
"""Cores with sparse weights in Amaranth's simulator: sparse and dense commands in any order against the golden model.

Covers: rtl/number/sparse.py, rtl/fixed/packed.py, rtl/array/sparse_weights.py, rtl/core/placement.py.
"""

import importlib
import inspect
import types

import numpy as np
import pytest

from tests.cases import sweep

from .test_core import STEPS, awkward, make, run

NAN = 0x7FC00000
#: (accumulate, mantissa, block, rows, cols, extras): blocks shorter than the rows, as long, longer, ragged.
DESIGNS = {
    "equal": ("fp32", 8, (1, 4), 4, 3, {}),
    "shorter": ("fp32", 5, (1, 4), 8, 2, {}),
    "twice": ("fp32", 8, (1, 8), 4, 4, {}),
    "longer": ("aligned", 6, (1, 16), 4, 2, {}),
    "tiles": ("aligned", 4, (4, 4), 4, 4, {}),
    "long-tiles": ("fp32", 4, (8, 8), 2, 2, {}),
    "recoded": ("fp32", 4, (1, 4), 4, 2, {"multiplier": "recoded"}),
    "recoded-long": ("aligned", 5, (1, 8), 4, 2, {"multiplier": "recoded"}),
    "recoded-short": ("aligned", 3, (1, 4), 8, 2, {"multiplier": "recoded", "group": (2, 1)}),
    "idle-rows": ("fp32", 6, (1, 4), 6, 2, {"ragged": True}),
    "uneven-long": ("aligned", 6, (1, 12), 4, 2, {"ragged": True}),
    "share": ("fp32", 8, (1, 16), 4, 4, {"share": 2, "group": (2, 2)}),
    "share-recoded": ("aligned", 4, (1, 16), 2, 4, {"share": 4, "multiplier": "recoded"}),
    "pipelined": ("fp32", 8, (1, 8), 8, 2, {"pipeline": 2, "group": (2, 2)}),
    "pipelined-elements": ("aligned", 3, (1, 16), 16, 2, {
        "sparse": (1, 2), "pipeline": 7, "multiplier": "recoded", "group": (1, 2)}),
    "narrow-exponent": ("aligned", 8, (1, 4), 4, 2, {"exponent": 6}),
    "1:2": ("fp32", 8, (1, 4), 4, 2, {"sparse": (1, 2)}),
    "1:4": ("aligned", 6, (1, 4), 4, 2, {"sparse": (1, 4)}),
    "1:4-recoded": ("fp32", 3, (1, 16), 4, 2, {"sparse": (1, 4), "multiplier": "recoded"}),
    "4:8": ("fp32", 8, (1, 8), 8, 2, {"sparse": (4, 8)}),
    "4:8-recoded": ("fp32", 4, (1, 16), 4, 2, {"sparse": (4, 8), "multiplier": "recoded"}),
}


def design_of(name):
    *values, extras = DESIGNS[name]
    return make(*values, {"sparse": (2, 4), **extras})


def products(design, seed=1, count=8, any_index=False):
    """Products of every number of rows, ragged along K and N, sparse or dense at random; of each kind two at least."""
    rng, reach = np.random.default_rng(seed), design.reach(design.rows)
    result = []
    for number in range(count):
        m, k = rng.integers(1, 7), rng.integers(1, 2 * max(design.format.terms, reach) + 2)
        n = rng.integers(1, design.cols + 2)
        sparse = bool(number % 2 if number < 4 else rng.integers(2))
        more = [np.random.default_rng(number)] if sparse and any_index else []
        result.append((awkward(rng, (m, k), number == 3), awkward(rng, (k, n), number == 6), sparse, *more))
    return result


#: Designs whose parts others have, too: in the long regression.
SELDOM = ("share", "pipelined-elements", "shorter", "twice", "recoded-long", "share-recoded", "narrow-exponent", "1:2",
          "1:4", "4:8-recoded", "uneven-long", "recoded", "4:8", "equal", "tiles", "longer", "1:4-recoded")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SELDOM)) for name in DESIGNS])
def test_products_equal_golden(name):
    design = design_of(name)
    got, want = run(design, products(design, count=10))
    assert got == want
    values = [v for row, _ in want for v in row]
    assert NAN in values and len(set(values)) > 10


@pytest.mark.parametrize("name", sweep(4, ["4:8", "equal", "1:4", "recoded-short"]))
def test_every_index_has_its_meaning(name):
    """Out of order, repeated, beyond what its place reaches."""
    design = design_of(name)
    got, want = run(design, products(design, 3, 5, any_index=True))
    assert got == want


@pytest.mark.parametrize("name", sweep(3, ["share", "recoded-short", "equal"]))
def test_pauses_change_nothing(name):
    design = design_of(name)
    got, want = run(design, products(design, 2, 5), (0.4, 0.4, 0.5, 0.5), STEPS["all"])
    assert got == want


# --- Mutants --------------------------------------------------------------------------------------

#: Where a fault is planted: module, class, module that uses it -> what stands there, what is put there, a design that
#: shows it. Faults of indices show where indices are any.
MUTANTS = [
    ("rtl.number.sparse", "Sparse", "self.kept * self.group + row % self.kept", "self.kept * self.group", "equal"),
    ("rtl.number.sparse", "Sparse", "~offset[n] for n", "offset[n] for n", "equal"),
    ("rtl.number.sparse", "SparseRecoded", "dot.head.eq(head)", "dot.head.eq(0)", "recoded-short"),
    ("rtl.number.sparse", "SparseRecoded", "self.enter(m, acts), weights", "acts, weights", "recoded-short"),
    ("rtl.number.sparse", "Sparse", "load & ~sparse", "load & 0", "equal"),
    ("rtl.number.sparse", "SparseRecoded", "(load & sparse).replicate", "load.replicate", "recoded-short"),
    ("rtl.number.sparse", "SparseRecoded", "held.offset & ~load.replicate(bits)", "held.offset", "recoded-short"),
    ("rtl.array.array", "Array", "row.west.sparse.eq(sparse_skew.o[i])", "row.west.sparse.eq(self.sparse)", "share"),
    ("rtl.array.pe", "Group", '{"sparse": west.sparse}', '{"sparse": west.swap}', "share"),
    ("rtl.array.sparse_weights", "SparseWeightBuffer", "Mux(ahead < 0, 0,", "Mux(0, 0,", "equal"),
    ("rtl.array.sparse_weights", "SparseWeightBuffer", "Mux(ahead > most, most, ahead)", "ahead", "equal"),
    ("rtl.array.sparse_weights", "SparseWeightBuffer", "tile_row == s * height", "tile_row == 0", "recoded-short"),
    ("rtl.array.sparse_weights", "SparseWeightBuffer", "line & beat", "line", "recoded-long"),
    ("rtl.array.sparse_weights", "SparseWeightBuffer", "bank.r_en.eq(start)", "bank.r_en.eq(1)", "recoded-long"),
    ("rtl.array.pe", "Group", "above & west.joins.replicate(len(above))", "above", "equal"),
    ("rtl.array.pe", "Group", "above & west.joins.replicate(len(above))", "0", "equal"),
    ("rtl.array.array", "Array", "self.joins, 1 + number.lead + i", "self.joins, number.lead + i", "equal"),
    ("rtl.core.placement", "Placement", "self.i.mantissa[row])", "self.i.mantissa[into])", "equal"),
    ("rtl.core.placement", "Placement", "given[into], given[block]", "given[into], given[into]", "shorter"),
    ("rtl.core.sequencer", "Sequencer", "place == params.sparse_block - 1", "place == params.sparse_block", "longer"),
    ("rtl.accumulate.accumulator", "Accumulator", "& ~self.east.skip[s].replicate",
     "| ~self.east.skip[s].replicate", "equal"),
    ("rtl.accumulate.accumulator", "Accumulator", "either.eq(0)", "either.eq(1)", "equal"),
    ("rtl.accumulate.accumulator", "Accumulator", "total.eq(-(1 << len(total) - 1))",
     "total.eq((1 << len(total) - 1) - 1)", "tiles"),
]


def plant(monkeypatch, module, name, before, after):
    """Use a class with a changed line in place of a class, wherever a core has it."""
    original = importlib.import_module(module)
    text = inspect.getsource(original)
    assert text.count(before) == 1, f"{before} stands {text.count(before)} times in {module}"
    changed = types.ModuleType(original.__name__)
    changed.__package__ = original.__package__
    exec(compile(text.replace(before, after), original.__file__, "exec"), changed.__dict__)
    if name in ("Sparse", "SparseRecoded"):
        multiplier = "plain" if name == "Sparse" else "recoded"
        monkeypatch.setitem(importlib.import_module("rtl.number.kinds").SPARSE, multiplier, getattr(changed, name))
        return
    user = "rtl.array.array" if name == "Group" else "rtl.core.core"
    monkeypatch.setattr(importlib.import_module(user), name, getattr(changed, name))


def changes(design):
    """Dense and sparse products of full tiles in turns, so many rows that each follows the last without a bubble."""
    rng, terms = np.random.default_rng(5), max(design.format.terms, design.reach(design.rows))
    return [(rng.standard_normal((6, terms), np.float32), rng.standard_normal((terms, design.cols), np.float32),
             bool(number % 2)) for number in range(4)]


@pytest.mark.parametrize("module, name, before, after, shown", [
    pytest.param(*mutant, marks=() if number in (0, 9) else pytest.mark.slow) for number, mutant in enumerate(MUTANTS)])
def test_mutants_are_caught(module, name, before, after, shown, monkeypatch):
    plant(monkeypatch, module, name, before, after)
    design = design_of(shown)
    try:
        idle = 0.5 * ("beat" in before)    # a fault in what pauses of the weights do
        got, want = run(design, products(design, 3, 5, any_index=True) + changes(design), (0, idle, 0, 0))
    except AssertionError:    # it stands still
        return
    assert got != want
