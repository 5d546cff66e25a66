"""Pods in a four-state simulator: nothing undefined is written or read, and the bits are golden's."""

import numpy as np
import pytest

from cosim.pods.check import check
from cosim.pods.run import KINDS, Pods
from golden.pods.compiler import compiled
from golden.pods.execute import execute
from hbfp.options import pods_from_values
from tests.cosim.fourstate_player import FourStatePlayer

from .test_check import SMALL, mlp

pytestmark = pytest.mark.cosim


#: Cycles of a run in which its reset is high.
RESET = 2


def test_nothing_is_undefined_and_bits_are_golden(monkeypatch, tmp_path):
    monkeypatch.setattr("hbfp.cosim.pods.run.Player", lambda manifest, level: FourStatePlayer(manifest, tmp_path))
    pods = Pods(pods_from_values(SMALL))
    job = compiled(pods.design, mlp(np.random.default_rng(1), 6, 5, 3, m=6))
    written = pods.run(job.program)
    undefined = {name: bits[RESET:] for name, bits in pods.player.undefined.items()}
    kept = undefined.pop("o_kept")
    for name, bits in undefined.items():
        # Of what is written the lowest bit says whether there is anything.
        seen = [each & 1 or each * valid for each, valid in zip(bits, pods.player.shown[name][RESET:] & 1, strict=True)
                ] if name.split("__")[0] in KINDS else bits
        assert not any(seen), f"{name} is undefined in cycle {np.flatnonzero(seen)[0] + RESET}"
    assert len(written.kept) > 10 and not any(kept[-len(written.kept):])
    result = check("mlp", pods.design, job.program, written, execute(job.program, pods.design.core.format),
                   job.outcome.cycles)
    assert result.passed and result.values.compared > 50, (result.values.first, result.cycles.first)
