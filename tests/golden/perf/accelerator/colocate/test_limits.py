"""What limits a program: the array where DRAM is fast, the DRAM where it is slow."""

import torch

from golden.lower.lowering import lower
from golden.perf.accelerator.colocate.limits import limit, limits
from golden.perf.accelerator.model import times
from tests.golden.lower.test_yields import SYSTEM

from .latencies import LATENCY


def test_the_dram_where_dram_is_slow():
    program = lower(torch.nn.Linear(64, 64, bias=False), (torch.ones(64, 64),), SYSTEM).program
    fast, slow = (limits(program, times(program, LATENCY, 32, bandwidth), bandwidth) for bandwidth in (1024, 1))
    assert limit(fast) == "array" and limit(slow) == "DRAM" and slow["array"] < fast["array"]
    assert all(0 <= share <= 1 for each in (fast, slow) for share in each.values()) and slow["DRAM"] > 0.9
    assert 0 < slow["bus"] < slow["DRAM"] / SYSTEM.beat
