"""Bit-exactness over widths, blocks and arrays: a covering selection always, all of it on request.

Covers: cosim/work/products.py, cosim/work/results.py.
"""

import json
import multiprocessing
import time
from itertools import combinations
from types import SimpleNamespace

import pytest

from cosim.work import regression
from cosim.work.regression import ACCUMULATES, ARRAYS, BLOCKS, MANTISSAS, ROUNDINGS, SELECTION
from tests.cases import slow

AXES = (MANTISSAS, BLOCKS, ARRAYS, ACCUMULATES, ROUNDINGS)
#: Cells that run by default: cores of one element and of blocks longer than idle rows, and converters of large ones.
OFTEN = (SELECTION[0], SELECTION[1], SELECTION[12])


def test_matrix_has_every_cell():
    assert len(regression.cells()) == len(set(regression.cells())) == (7 * 5 + 2 * 3) * 6 * 2 * 3
    for cell in regression.cells():
        regression.design_of_cell(cell)


def test_selection_covers_every_value():
    for place, axis in enumerate(AXES):
        assert {cell[place] for cell in SELECTION} == set(axis)
    pairs = {(cell[2], cell[3]) for cell in SELECTION} | {(cell[3], cell[4]) for cell in SELECTION}
    assert all((a, r) in pairs for a in ACCUMULATES for r in ROUNDINGS) and len(pairs) > 8
    ways = {(d.segments > 1, d.block_tiles > 1, d.ragged) for d in map(regression.design_of_cell, SELECTION)}
    assert {(False, False, False), (False, True, False), (True, False, False), (False, True, True)} <= ways


def test_matrix_has_sparse_weights_on_every_lay():
    cells = regression.sparse_cells()
    assert len(set(cells)) == len(cells) > 100 and not set(cells) & set(regression.cells())
    assert {cell[4] for cell in cells} == set(regression.SPARSE)
    lays = {(d.joined > 1, d.segments > d.joined, d.block_tiles > 1) for d in map(regression.design_of_cell, cells)}
    assert {(True, False, False), (True, True, False), (False, False, True)} <= lays
    assert len({regression.build_name("core", regression.design_of_cell(cell)) for cell in cells}) == len(cells)
    assert regression.name(cells[0]) == "W=4 block 1x8 array 8x8 fp32 2:4 rne"


@pytest.mark.cosim
def test_sparse_cell_agrees():
    result, _ = regression.check_core(regression.design_of_cell(((4, 6), (1, 8), (8, 8), "aligned", (2, 4), "rne")))
    assert result.compared > 1000 and not result.mismatches, result.first


@pytest.mark.cosim
@pytest.mark.parametrize(["cell"], [(cell,) if cell in OFTEN else slow((cell,)) for cell in SELECTION],
                         ids=regression.name)
def test_cell_agrees(cell):
    check = regression.check_core if cell[-1] == "rne" else regression.check_converter
    design = regression.design_of_cell(cell)
    result, _ = check(design)
    assert result.compared > 1000 and not result.mismatches, result.first
    if check is regression.check_converter and cell[2] in ((3, 5), (8, 8)):
        result, _ = regression.check_core(design)
        assert result.compared > 1000 and not result.mismatches, result.first


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("mantissa, array", list(dict.fromkeys((cell[0], cell[2]) for cell in regression.cells())),
                         ids=str)
def test_all_cells_agree(mantissa, array):
    chosen = [cell for cell in regression.cells() if (cell[0], cell[2]) == (mantissa, array)]
    results = regression.run_cells(chosen, jobs=1)
    assert results and all(entry["passed"] for entry in results.values())


def test_known_results_are_not_built_again(tmp_path, monkeypatch):
    cell = (2, (1, 8), (1, 1), "fp32", "rne")
    calls = []

    def check(kind, design, keep):
        calls.append(kind)
        return {"passed": len(calls) > 1, "compared": 5, "first": [], "sha256": "text"}

    class Emitted:
        data = SimpleNamespace(sha256="text")

    monkeypatch.setattr(regression, "_check", check)
    monkeypatch.setattr(regression, "emit", lambda design, unit=None: Emitted)
    path = tmp_path / "results.json"
    for expected in (1, 2, 2):    # failed, then passed, then known
        regression.run_cells([cell], jobs=1, path=path)
        assert len(calls) == expected
    monkeypatch.setattr(Emitted.data, "sha256", "other text")
    regression.run_cells([cell], jobs=1, path=path)
    assert len(calls) == 3 and len(json.loads(path.read_text())) == 1


def test_two_runs_at_once_keep_each_others_results(tmp_path):
    """Each run checks one build of its own and one of both, which is checked once."""
    path = tmp_path / "results.json"
    cells = [(2, (1, 8), (rows, 1), "fp32", "rne") for rows in (1, 2, 3)]
    runs = [multiprocessing.get_context("spawn").Process(target=slow_run, args=(path, chosen))
            for chosen in (cells[:2], cells[:0:-1])]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0, 0]
    assert len(json.loads(path.read_text())) == 3
    assert sorted((tmp_path / "checked").read_text().split()) == ["1x1", "2x1", "3x1"]


def slow_run(path, chosen):
    """A run of the matrix whose checks take a while and do nothing."""
    def check(kind, design, keep):
        time.sleep(0.3)
        with open(path.with_name("checked"), "a") as log:
            log.write(f"{design.rows}x{design.cols}\n")
        return {"passed": True, "compared": 5, "first": [], "sha256": "text"}

    regression._check = check
    regression.emit = lambda design, unit=None: SimpleNamespace(data=SimpleNamespace(sha256="text"))
    regression.run_cells(chosen, jobs=1, path=path)


@pytest.mark.parametrize("text", ["", "[]", '{"core": 3}', '{"core": {"passed": true}}'])
def test_results_that_cannot_be_read_are_made_again(tmp_path, monkeypatch, capsys, text):
    path = tmp_path / "results.json"
    path.write_text(text)
    monkeypatch.setattr(regression, "_check", lambda *_: {"passed": True, "compared": 5, "first": []})
    regression.run_cells([(2, (1, 8), (1, 1), "fp32", "rne")], jobs=1, path=path)
    assert len(json.loads(path.read_text())) == 1
    assert set(capsys.readouterr().err.splitlines()) == {f"{path}: cannot be read; making it again"}


def test_every_pair_of_roundings_shares_a_core():
    cells = regression.cells()
    for a, b in combinations([cell for cell in cells if cell[:4] == cells[0][:4]], 2):
        assert regression.needs(a) & regression.needs(b)
