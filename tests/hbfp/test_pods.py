"""The description of a machine of pods: what it refuses, its name, its key, and the way back from its words."""

import re

import pytest

from hbfp.design import Design
from hbfp.format import HBFPFormat
from hbfp.options import pods_from_values
from hbfp.pods import INTERCONNECTS, PodsDesign
from hbfp.values import OptionError


@pytest.mark.parametrize("values, message", [
    ({"pods": "6"}, "--pods 6: must be a power of two"),
    ({"pods": "1"}, "--pods 1: must be 2 to 256"),
    ({"interconnect": "bus"}, f"--interconnect bus: must be one of {', '.join(INTERCONNECTS)}"),
    ({"bank": "31"}, "--bank 31: must hold a tile of 32 rows"),
    ({"rounds": "1"}, "--rounds 1: must be 2 to 65536"),
    ({"arithmetic": "bf16"}, "--arithmetic bf16: must be hbfp in a pod"),
    ({"accumulate": "aligned"}, "--accumulate aligned: must be fp32 in a pod"),
    ({"pipeline": "1"}, "--pipeline 1: must be 0 in a pod"),
    ({"wide": "9"}, "--wide 9: must be 0 in a pod"),
    ({"subnormals": "gradual"}, "--subnormals gradual: must be flush in a pod"),
    ({"cols": "16"}, "--cols 16: must be 32 in a pod"),
    ({"depth": "64"}, "--depth 64: must be 512 in a pod"),
    ({"side_lanes": "4"}, "--side-lanes 4: must be 0 in a pod"),
    ({"banks": "1"}, "--banks 1: must be 2 in a pod"),
    ({"weight_tiles": "1"}, "--weight-tiles 1: must be 2 in a pod"),
    ({"convert_lanes": "4"}, "--convert-lanes 4: must be 0 in a pod"),
    ({"sparse": "2,4"}, "--sparse 2,4: must be 1,1 in a pod"),
    ({"rounding": "stochastic"}, "--rounding stochastic: must be rne or truncate in a pod"),
    ({"block": "16,16"}, "--block 16,16: must be 1,B in a pod, B a divisor of 32"),
    ({"block": "1,64"}, "--block 1,64: must be 1,B in a pod, B a divisor of 32"),
], ids=str)
def test_what_is_refused(values, message):
    with pytest.raises(OptionError, match=f"^{re.escape(message)}$"):
        pods_from_values(values)


def test_blocks_fit_the_rows():
    assert pods_from_values({"rows": "8"}).core.format.block == (1, 8)
    assert pods_from_values({"rows": 64}).core.format.block == pods_from_values({}).core.format.block == (1, 32)
    assert pods_from_values({"rows": 8, "block": (1, 2)}).core.format.block == (1, 2)


def test_keys_and_names_tell_machines_apart():
    core = Design(rows=8, format=HBFPFormat(block=(1, 8)))
    machines = [PodsDesign(core=core), PodsDesign(core=core, pods=4), PodsDesign(core=core, bank=64),
                PodsDesign(core=core, rounds=64), PodsDesign(core=core, interconnect="crossbar"),
                PodsDesign(core=Design(rows=8, format=HBFPFormat(block=(1, 4))))]
    assert len({each.key for each in machines}) == len({each.name for each in machines}) == len(machines)
    assert machines[0].key == PodsDesign(core=core).key
    assert machines[1].name == "hbfp_m8_e10_b1x8_r8_c8_g8x4_fp32_pods4_butterfly2_k2048_t2048"
