"""Designs: how blocks lie on the rows, widths, groups, names; every message word for word.

Covers: hbfp/lay.py, hbfp/sparsity.py.
"""

import itertools
import re

import pytest

from hbfp import describe
from hbfp.arithmetic import KINDS
from hbfp.declared import ACCELERATOR, CORES, PODS, SYSTEMS, USES, Field
from hbfp.design import ConflictError, Design
from hbfp.format import HBFPFormat
from hbfp.pods import PodsDesign
from hbfp.system import Accelerator
from tests.hbfp.other_values import OTHER


def make(terms=32, side=1, mantissa=8, **options):
    return Design(format=HBFPFormat(mantissa=mantissa, block=(side, terms)), **options)


def test_defaults():
    design = Design()
    assert (design.rows, design.cols, design.accumulate, design.arithmetic, design.group, design.depth) == (
        32, 32, "fp32", "hbfp", (8, 4), 512)
    assert Design(rows=32, cols=None) == design and Design(rows=16, format=HBFPFormat(block=(1, 16))).cols == 16


# (terms, rows): height, segments, rows in use, passes a block
@pytest.mark.parametrize("terms, rows, height, segments, used, passes", [
    (32, 32, 32, 1, 32, 1), (8, 32, 8, 4, 32, 1), (64, 32, 32, 1, 32, 2), (1, 4, 1, 4, 4, 1), (1024, 1, 1, 1, 1, 1024),
    (24, 32, 24, 1, 24, 1), (5, 32, 5, 6, 30, 1), (33, 32, 32, 1, 32, 2), (100, 32, 32, 1, 32, 4)])
def test_blocks_on_rows(terms, rows, height, segments, used, passes):
    design = make(terms, rows=rows, ragged=True)
    assert (design.height, design.segments, design.tile_rows, design.block_tiles) == (height, segments, used, passes)


@pytest.mark.parametrize("arithmetic, lane, result", [
    ("hbfp", 8, 32), ("fp32", 32, 32), ("fma", 32, 32), ("bf16", 16, 32), ("int", 8, 28)])
def test_widths(arithmetic, lane, result):
    design = Design(arithmetic=arithmetic)
    assert (design.lane_width, design.result_width) == (lane, result)
    assert design.integer == (arithmetic in ("hbfp", "int")) and design.blocked == (arithmetic == "hbfp")


def test_accumulator_holds_the_most_and_largest_blocks():
    for mantissa, terms, growth, guard in itertools.product((2, 8, 12), (1, 8, 32), (0, 3, 8), (0, 4)):
        design = make(terms, mantissa=mantissa, rows=terms, accumulate="aligned", growth=growth, guard=guard)
        most = (2 ** growth) * terms * design.format.limit ** 2 << guard
        assert most < 2 ** (design.accumulator_width - 1)
    assert make(32, rows=32, arithmetic="int", growth=5).accumulator_width == 25


def test_groups_fit():
    """The default divides the rows of a segment and the columns, for every shape."""
    for rows, cols, terms in itertools.product((1, 2, 3, 6, 8, 24, 32, 255), (1, 5, 8, 30), (1, 2, 3, 8, 24, 32, 64)):
        design = make(terms, rows=rows, cols=cols, ragged=True)
        kr, kc = design.group
        assert design.height % kr == 0 and rows % kr == 0 and cols % kc == 0
        assert kr <= 8 and kc <= 4
        assert (design.group_rows * kr, design.group_cols * kc) == (rows, cols)


def test_converter_takes_whole_blocks():
    for rows, terms, square in itertools.product((1, 3, 8, 32), (1, 7, 8, 24, 32), (False, True)):
        design = make(terms, terms if square else 1, rows=rows, ragged=True)
        assert design.encode_lanes <= max(rows, 1) and terms % design.encode_lanes == 0
        assert design.encode_lanes * design.encode_beats == design.format.block[0] * terms


@pytest.mark.parametrize("options, name", [
    ({}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32"),
    ({"terms": 16, "side": 16, "rows": 16, "cols": 2}, "hbfp_m8_e10_b16x16_r16_c2_g8x2_fp32"),
    ({"accumulate": "aligned"}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_aligned"),
    ({"accumulate": "aligned", "guard": 5, "growth": 6}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_aligned_ag5_aw6"),
    ({"terms": 64, "share": 2, "depth": 64}, "hbfp_m8_e10_b1x64_r32_c32_g8x4_fp32_share2_d64"),
    ({"depth": 64}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32_d64"),
    ({"arithmetic": "int", "growth": 9}, "int8_r32_c32_g8x4_aw9"),
    ({"multiplier": "recoded", "depth": 4}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32_recoded_d4"),
    ({"arithmetic": "fp32", "multiplier": "recoded"}, "fp32_r32_c32_g8x4_recoded"),
    ({"arithmetic": "bf16", "multiplier": "recoded"}, "bf16_r32_c32_g8x4_recoded"),
    ({"arithmetic": "bf16", "group": (1, 1)}, "bf16_r32_c32_g1x1"),
    ({"arithmetic": "fma", "pipeline": 2}, "fma_r32_c32_g1x4_p2"),
    ({"pipeline": 3}, "hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32_p3"),
])
def test_name(options, name):
    assert make(**options).name == name


def test_name_of_rare_formats():
    fmt = HBFPFormat(rounding="stochastic", noise_bits=5, subnormals="gradual")
    assert Design(format=fmt).name == "hbfp_m8_e10_b1x32_r32_c32_g8x4_fp32_stochastic_n5_sgradual"


def test_as_dict_is_plain():
    data = Design().as_dict()
    assert data["rows"] == 32 and data["format"]["block"] == (1, 32) and data["group"] == (8, 4)
    assert Design.from_dict(data) == Design()


@pytest.mark.parametrize("options", [{"rows": n, "terms": n} for n in (1, 256)] + [{"cols": n} for n in (1, 256)]
                         + [{"depth": n} for n in (1, 65536)] + [{"guard": n, "accumulate": "aligned"} for n in (0, 16)]
                         + [{"growth": n, "accumulate": "aligned"} for n in (0, 16)]
                         + [{"terms": 8, "accumulate": "aligned", "growth": 2}], ids=str)
def test_edges_are_valid(options):
    make(**options)


@pytest.mark.parametrize("options, message", [
    ({"rows": 0}, "Rows must be 1 to 256, not 0"),
    ({"rows": 257}, "Rows must be 1 to 256, not 257"),
    ({"rows": 32.0}, "Rows must be 1 to 256, not 32.0"),
    ({"cols": 0}, "Columns must be 1 to 256, not 0"),
    ({"cols": 257}, "Columns must be 1 to 256, not 257"),
    ({"depth": 0}, "Depth must be 1 to 65536 rows, not 0"),
    ({"depth": 65537}, "Depth must be 1 to 65536 rows, not 65537"),
    ({"guard": -1}, "Guard width must be 0 to 16 bits, not -1"),
    ({"guard": 17}, "Guard width must be 0 to 16 bits, not 17"),
    ({"side_lanes": -1}, "Side lanes must be 0 to 256, not -1"),
    ({"banks": 3}, "Banks must be 1 to 2, not 3"),
    ({"weight_tiles": 0}, "Weight tiles must be 1 to 2, not 0"),
    ({"share": 0}, "Share must be 1 to 64 columns, not 0"),
    ({"growth": 17}, "Growth width must be 0 to 16 bits, not 17"),
    ({"accumulate": "tree"}, "Accumulation must be one of fp32, aligned, fp24, bf16, not 'tree'"),
    ({"pipeline": 9, "arithmetic": "fp32"}, "Pipeline depth must be 0 to 8 registers, not 9"),
    ({"pipeline": 1.0, "arithmetic": "fp32"}, "Pipeline depth must be 0 to 8 registers, not 1.0"),
    ({"multiplier": "booth"}, "Multiplier must be one of plain, recoded, not 'booth'"),
    ({"group": (0, 1)}, "Group side must be 1 to 256, not 0"),
    ({"group": (8, True)}, "Group side must be 1 to 256, not True"),
    ({"group": (8,)}, "Group must be a pair, not (8,)"),
    ({"group": 8}, "Group must be a pair, not 8"),
    ({"ragged": 1}, "Ragged must be True or False, not 1"),
    ({"arithmetic": "fp64"}, "Arithmetic must be one of hbfp, fp32, fma, bf16, fp16, int8, int, not 'fp64'"),
], ids=str)
def test_wrong_value(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(**options)


@pytest.mark.parametrize("options, name, value, rule", [
    ({"arithmetic": "int", "accumulate": "aligned"}, "accumulate", "aligned", "must be fp32 where arithmetic is int"),
    ({"arithmetic": "bf16", "accumulate": "aligned"}, "accumulate", "aligned", "must be fp32 where arithmetic is bf16"),
    ({"terms": 24}, "block", "1,24", "must divide or be divided by the 32 rows along K, or be ragged"),
    ({"terms": 24, "side": 24}, "block", "24,24", "must divide or be divided by the 32 rows along K, or be ragged"),
    ({"pipeline": 1, "arithmetic": "int"}, "pipeline", 1, "must be 0 where arithmetic is int"),
    ({"pipeline": 8}, "pipeline", 8, "must be 0 to 7 where arithmetic is hbfp"),
    ({"pipeline": 2, "terms": 8}, "pipeline", 2, "must be at most 1, the cycles between segments"),
    ({"pipeline": 3, "terms": 8, "group": (4, 4)}, "pipeline", 3, "must be at most 2, the cycles between segments"),
    ({"pipeline": 7, "arithmetic": "bf16"}, "pipeline", 7, "must be 0 to 6 where arithmetic is bf16"),
    ({"pipeline": 1, "arithmetic": "fma", "group": (2, 1)}, "group", "2,1", "must be one row tall with a pipeline"),
    ({"group": (3, 4)}, "group", "3,4", "must divide 32 rows of a segment and 32 columns"),
    ({"group": (8, 3)}, "group", "8,3", "must divide 32 rows of a segment and 32 columns"),
    ({"group": (64, 1)}, "group", "64,1", "must divide 32 rows of a segment and 32 columns"),
    ({"terms": 8, "group": (16, 1)}, "group", "16,1", "must divide 8 rows of a segment and 32 columns"),
    ({"terms": 24, "ragged": True, "group": (3, 1)}, "group", "3,1", "must divide 8 rows of a segment and 32 columns"),
    ({"terms": 4, "accumulate": "aligned", "growth": 2}, "growth", 2, "must be 3 or more for 8 segments of a column"),
    ({"rows": 40, "terms": 8, "accumulate": "aligned", "growth": 2}, "growth", 2,
     "must be 3 or more for 5 segments of a column"),
    ({"terms": 1024, "mantissa": 16, "accumulate": "aligned", "guard": 16, "growth": 16}, "growth", 16,
     "must keep the accumulator at 60 bits or fewer, not 73"),
    ({"wide": 6, "arithmetic": "int", "mantissa": 4}, "wide", 6, "must be 0 where arithmetic is int"),
    ({"wide": 8, "mantissa": 4}, "wide", 8, "must be 0 or 5 to 7 where mantissas have 4 bits"),
    ({"wide": 4, "mantissa": 4}, "wide", 4, "must be 0 or 5 to 7 where mantissas have 4 bits"),
    ({"wide": 16, "mantissa": 16}, "wide", 16, "must be 0 where mantissas have 16 bits"),
    ({"wide": 6, "mantissa": 4, "cols": 3}, "cols", 3,
     "must be even with wide mantissas: their digits take two columns"),
    ({"wide": 6, "mantissa": 4, "group": (8, 1)}, "group", "8,1",
     "must have an even number of columns with wide mantissas"),
    ({"banks": 1, "share": 2, "terms": 64}, "banks", 1, "must be 2 where columns share an accumulator"),
    ({"fabric": "fpga"}, "fabric", "fpga", "must be gates where there is no pipeline"),
    ({"fabric": "fpga", "pipeline": 1, "share": 2, "terms": 64}, "fabric", "fpga",
     "must be gates where columns share an accumulator"),
    ({"fabric": "fpga", "pipeline": 1, "sparse": (2, 4)}, "fabric", "fpga",
     "must be gates where weights may be sparse"),
    ({"fabric": "fpga", "pipeline": 1, "multiplier": "recoded"}, "fabric", "fpga",
     "must be gates where multipliers are recoded"),
    ({"fabric": "fpga", "pipeline": 1, "weight_clock": "gated"}, "weight_clock", "gated",
     "must be free where the fabric is fpga"),
    ({"sparse": (2, 4), "weight_clock": "gated"}, "weight_clock", "gated",
     "must be free where weights may be sparse"),
    ({"convert_lanes": 3}, "convert_lanes", 3, "must be 0 or divide the 32 lanes of a converter"),
    ({"convert_lanes": 4, "arithmetic": "int"}, "convert_lanes", 4, "must be 0 where arithmetic is int"),
    ({"side_lanes": 3}, "side_lanes", 3, "must be 0 or divide the 32 columns"),
    ({"side_lanes": 4, "arithmetic": "int"}, "side_lanes", 4, "must be 0 where arithmetic is int"),
], ids=str)
def test_wrong_pair(options, name, value, rule):
    title = name.replace("_", " ").capitalize()
    with pytest.raises(ConflictError, match=f"^{re.escape(f'{title} {value} {rule}')}$") as caught:
        make(**options)
    assert (caught.value.name, caught.value.value, caught.value.rule) == (name, value, rule)


def test_baselines_do_not_look_at_the_block():
    assert make(24, arithmetic="fp32").height == 32


@pytest.mark.parametrize("options, most", [
    ({}, 65535), ({"accumulate": "aligned", "growth": 16}, 65535), ({"accumulate": "aligned", "growth": 3}, 8),
    ({"accumulate": "aligned", "growth": 3, "format": HBFPFormat(block=(1, 2))}, 4),
    ({"accumulate": "aligned", "growth": 3, "format": HBFPFormat(block=(1, 8))}, 16),
    ({"arithmetic": "int", "growth": 5}, 32)])
def test_passes_of_a_command(options, most):
    """The field of the command has 16 bits; integer accumulators hold 2^growth sums."""
    assert Design(**{"format": HBFPFormat(block=(1, 4)), "rows": 4} | options).max_tiles == most


# --- Sparse weights -----------------------------------------------------------------------------


# (terms, rows, N, M): rows of a segment, segments, how many a dense block takes; passes of a block, dense and sparse
@pytest.mark.parametrize("terms, rows, sparse, lay, passes", [
    (32, 32, (2, 4), (16, 2, 2), (1, 1)), (8, 32, (2, 4), (4, 8, 2), (1, 1)), (64, 32, (2, 4), (32, 1, 1), (2, 1)),
    (128, 32, (2, 4), (32, 1, 1), (4, 2)), (32, 32, (1, 4), (8, 4, 4), (1, 1)), (128, 32, (1, 4), (32, 1, 1), (4, 1)),
    (8, 8, (4, 8), (4, 2, 2), (1, 1)), (4, 6, (2, 4), (2, 3, 2), (1, 1)), (12, 4, (2, 4), (4, 1, 1), (3, 2)),
    (32, 32, (1, 1), (32, 1, 1), (1, 1))])
def test_sparse_blocks_on_rows(terms, rows, sparse, lay, passes):
    design = make(terms, rows=rows, sparse=sparse, ragged=True)
    assert (design.height, design.segments, design.joined) == lay
    assert (design.lay().block_tiles, design.lay(True).block_tiles) == passes
    assert design.takes_sparse == (sparse != (1, 1)) and design.reach(rows) == rows * sparse[1] // sparse[0]


def test_most_passes_of_sparse_commands():
    design = make(8, rows=8, sparse=(2, 4), accumulate="aligned", growth=3)
    assert (design.most_tiles(), design.most_tiles(True)) == (8, 4)
    design = make(32, rows=8, sparse=(2, 4), accumulate="aligned", growth=3)
    assert (design.most_tiles(), design.most_tiles(True)) == (32, 16)


def test_sparse_name():
    assert make(64, sparse=(2, 4)).name == "hbfp_m8_e10_b1x64_r32_c32_g8x4_fp32_sparse2x4"


@pytest.mark.parametrize("options, message", [
    ({"arithmetic": "int", "sparse": (2, 4)}, "Sparse 2,4 must be 1,1 where arithmetic is int"),
    ({"rows": 3, "terms": 12, "sparse": (2, 4)}, "Rows 3 must be a multiple of 2 where weights are 2 of 4"),
    ({"rows": 2, "terms": 2, "sparse": (2, 4)}, "Block 1,2 must be a multiple of 4 along K where weights are 2 of 4"),
    ({"rows": 4, "terms": 6, "side": 6, "sparse": (1, 2), "ragged": True},
     "Block 6,6 must be at most 4 or at least 8 along K where weights are 1 of 2"),
    ({"rows": 4, "terms": 12, "sparse": (2, 4)},
     "Block 1,12 must divide or be divided by the 8 terms of a sparse pass, or be ragged"),
    ({"group": (1, 4), "sparse": (2, 4)}, "Group 1,4 must have a multiple of 2 rows where weights are 2 of 4"),
    ({"terms": 64, "share": 2, "sparse": (2, 4)},
     "Share 2 must be a power of two that divides 32 columns and is at most 1, the passes of a block")], ids=str)
def test_what_sparse_weights_do_not_go_with(options, message):
    with pytest.raises(ConflictError, match=f"^{re.escape(message)}$"):
        make(**options)


@pytest.mark.parametrize("sparse, message", [
    ((3, 4), "Sparsity must be one of 1,2, 1,4, 2,4, 4,8, or 1,1 for none, not (3, 4)"),
    ((2, 9), "Sparsity side must be 1 to 8, not 9"), (2, "Sparsity must be a pair, not 2")])
def test_wrong_sparsity(sparse, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make(sparse=sparse)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("option", OTHER)
def test_an_option_is_refused_where_it_does_not_serve(option, use):
    """A format's options that a core has no use for have no effect there; all others are refused, by name."""
    arithmetic = {kind.use: name for name, kind in KINDS.items()}.get(use, "hbfp")
    side = 16 if {"rows", "cols"} & OTHER[option].keys() and use in SYSTEMS else 8
    values = {"rows": side, "cols": side, "block": (1, 8), "arithmetic": arithmetic} | OTHER[option]
    kinds, without_effect = describe.declared(Design), describe.declared(HBFPFormat) if use in CORES else ()
    refused = [name for name in describe.unserved(Design, use) if name in OTHER[option] and name not in without_effect]

    def build():
        core = describe.build(Design, values)
        return core if use in CORES else (Accelerator if use == ACCELERATOR else PodsDesign)(core=core)

    if not refused:
        build()
        return
    with pytest.raises(ConflictError) as caught:
        build()
    about, default = kinds[refused[0]]
    where = {ACCELERATOR: "in an accelerator", PODS: "in a pod"}.get(use, f"where arithmetic is {arithmetic}")
    assert (caught.value.name, caught.value.rule) == (refused[0], f"must be {about.spelled(default)} {where}")


def test_a_new_option_serves_no_system():
    assert Field(text="", title="").serves == CORES
