"""Where kernels run, and one line where they do not."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from golden.gpu import runtime  # noqa: E402

NOWHERE = "Tensors must be on a CUDA device, not cpu, where kernels are interpreted if TRITON_INTERPRET=1 is set"
CUDA = torch.device("cuda", 0)


@pytest.fixture
def machine(monkeypatch):
    """Say what Triton and PyTorch find."""
    def choose(triton=True, interpreted=False, capability=(9, 0)):
        runtime.problem.cache_clear()
        line = None if triton else "triton is missing; install it with: pip install 'hbfp[gpu]'"
        monkeypatch.setattr(runtime, "lacking", lambda library: line)
        monkeypatch.setattr(runtime, "INTERPRETED", interpreted)
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Some GPU")
    yield choose
    runtime.problem.cache_clear()


@pytest.mark.parametrize("device, found, line", [
    (CUDA, {}, None), (CUDA, {"capability": (8, 0)}, None),
    (CUDA, {"capability": (7, 5)}, "GPU must have compute capability 8.0 or more, not 7.5 (Some GPU)"),
    (CUDA, {"interpreted": True}, "TRITON_INTERPRET=1 is set, which takes tensors on the CPU, not on a CUDA device"),
    (torch.device("cpu"), {"interpreted": True}, None),
    (torch.device("cpu"), {}, NOWHERE),
    (torch.device("mps"), {}, "Tensors must be on a CUDA device, not mps"),
    (CUDA, {"triton": False}, "triton is missing; install it with: pip install 'hbfp[gpu]'")])
def test_what_keeps_kernels_from_running(machine, device, found, line):
    machine(**found)
    assert runtime.problem(device) == line
    if line is None:
        runtime.check(device)
        return
    with pytest.raises(ValueError if found.get("triton", True) else ImportError, match=f"^{re.escape(line)}$"):
        runtime.check(device)


def test_what_layers_give_to_kernels(machine):
    machine(interpreted=True)
    x = torch.ones(1)
    assert not runtime.serves(x)
    with runtime.forced():
        assert runtime.serves(x) and not runtime.serves(x.to("meta"))
        machine(interpreted=False)
        assert not runtime.serves(x)


@pytest.mark.slow
def test_without_triton():
    """It is imported, and says what to install when it is called."""
    code = ("import sys; sys.modules['triton'] = None\nimport torch, golden.gpu, golden.nn\n"
            "from hbfp.format import HBFPFormat\nassert golden.nn.HBFPLinear(2, 2)(torch.ones(1, 2)).shape == (1, 2)\n"
            "golden.gpu.encode(torch.ones(2), HBFPFormat())")
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "ImportError: triton is missing; install it with: pip install 'hbfp[gpu]'"
