"""What is written down of a workload is what the core's ports see when the bench runs it."""

import numpy as np
import pytest

from cosim.emit import emit
from cosim.manifest import Manifest
from cosim.simulate.simulation import Simulation
from cosim.work import operands
from cosim.work.device import Core
from cosim.work.operands import Product, Recorded, pieces, products, record
from golden.core.device import Golden
from hbfp.options import design_from_values

SMALL = {"rows": 4, "block": (1, 4), "depth": 32}


@pytest.fixture(autouse=True)
def small_products(monkeypatch):
    monkeypatch.setattr(operands, "_GAUSSIAN", 40)


@pytest.mark.parametrize("values", [SMALL, {"rows": 4, "arithmetic": "bf16"}, {"rows": 4, "arithmetic": "int"}])
def test_answers_are_the_golden_cores(values):
    """Also of a product that fills neither tiles nor columns: what is packed is what the core gives."""
    design = design_from_values(values)
    device = Recorded(emit(design))
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 7), (7, 3)))
    seen = device.product(x, w)
    assert {name: len(payloads) for name, payloads in seen.items()} == {"i_cmd": 1, "i_x": 10, "i_w": 8, "o": 5}
    value = device.simulation.streams["o"].unpack(seen["o"])
    assert value["last"].ravel().tolist() == [0, 0, 0, 0, 1]
    if design.arithmetic != "int":
        want = Golden(design).matmul(x, w)
        np.testing.assert_array_equal(value["value"][:, :3].astype(np.uint32).view(np.float32), want)
        assert not value["value"][:, 3:].any()


@pytest.mark.cosim
def test_ports_are_those_of_a_simulation():
    """A core of Verilog is offered the same payloads, and answers the same, products and conversions."""
    design = design_from_values(SMALL)
    manifest = emit(design)
    core, seen = Core(Simulation(manifest, level="-O1")), {}
    run = core.simulation.run

    def noted(inputs, outputs, **options):
        result = run(inputs, outputs, **options)
        for name, payloads in {**inputs, **result.payloads}.items():
            seen.setdefault(name, []).append(payloads)
        return result
    core.simulation.run = noted
    recorded = record(manifest, "gaussian")
    chosen = pieces(products("gaussian"), design)
    for piece in chosen:
        core.matmul(core.encode(piece.x), core.encode(piece.w, -2))
    for name in ("i_cmd", "i_x", "i_w", "o"):
        np.testing.assert_array_equal(np.concatenate(seen[name]), recorded[name], name)
    seen.clear()
    for piece in chosen:
        core.encode(piece.x)
    for name in ("i_q", "o_q"):
        whole = np.concatenate(seen[name])
        np.testing.assert_array_equal(np.resize(whole, recorded[name].shape), recorded[name], name)


def test_pieces_follow_multiply_accumulates():
    """A product has as many commands as its share; each has whole rows, K from the beginning, and a tile of columns."""
    design = design_from_values(SMALL)
    small, large = (Product(name, rows, 9, np.zeros((min(rows, 50), 30), np.float32), np.zeros((30, 9), np.float32))
                    for name, rows in (("small", 100), ("large", 900)))
    found = pieces([small, large], design, 10)
    assert [piece.name for piece in found] == ["small"] + ["large"] * 9
    assert all(piece.x.shape == (32, 24) and piece.w.shape[0] == 24 and piece.columns == 9 for piece in found)
    assert {piece.w.shape[1] for piece in found} == {4, 1}


def test_a_core_whose_passes_are_far_apart_has_more_rows():
    """It would wait for most of the time, and every cycle of waiting takes energy of the clock."""
    design = design_from_values(SMALL | {"depth": 512})
    large = Product("large", 900, 9, np.zeros((90, 40), np.float32), np.zeros((40, 9), np.float32))
    assert {piece.x.shape for piece in pieces([large], design, interval=64)} == {(64, 12)}
    assert {piece.x.shape for piece in pieces([large], design, interval=96)} == {(90, 8)}    # all there are
    assert {piece.x.shape for piece in pieces([large], design, interval=10)} == {(32, 24)}
    tall = design_from_values({"rows": 64, "cols": 4, "block": (1, 4)})
    assert {piece.x.shape[0] for piece in pieces([large], tall)} == {64}    # as long as a tile of weights takes to load


def test_conversions_are_as_many_as_the_workload_has():
    """Every number of X meets all columns, and every weight all rows: 2 of 40 products are conversions."""
    design = design_from_values(SMALL)
    found = record(emit(design), "gaussian")
    beats, macs = found["commands"].sum(0)
    assert len(found["i_x"]) == beats and macs == beats * 16
    assert found["every"] == len(found["i_x"]) // round(macs * 2 / 40 / 4)
    assert len(found["i_q"]) == len(found["o_q"]) == len(found["i_x"]) // found["every"]


def test_digits_are_those_of_the_bench():
    found = products("digits")
    assert [(each.name, each.rows, each.columns, each.w.shape[0]) for each in found] == [
        ("layer 1", 360, 256, 64), ("layer 2", 360, 128, 256), ("layer 3", 360, 10, 128)]
    assert (found[1].x >= 0).all()


def test_floats_convert_nothing():
    found = record(emit(design_from_values({"rows": 4, "arithmetic": "fp32", "depth": 32})), "gaussian")
    assert not {"i_q", "o_q", "every"} & set(found)
    assert isinstance(emit(design_from_values(SMALL)), Manifest)
