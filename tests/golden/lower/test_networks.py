"""Small networks of torchvision, transformers and plain torch.nn have PyTorch's bits on the golden machine."""

import json
import re
from importlib.util import find_spec

import pytest

from benchmarks import networks
from benchmarks.families import FAMILIES, NETWORKS, network
from golden.lower.errors import LoweringError
from hbfp.values import OptionError

from .test_lowering import accelerator, check

pytestmark = pytest.mark.filterwarnings("ignore")
#: Those that cannot be lowered -> what their line says.
REFUSED = {"fnet": "The model (to_copy) cannot be lowered: it gives complex64; numbers of float32 would do, and so "
                   "would a layer of its own for it, which --exclude runs on the host",
           "mixtral": "Layer 'model.model.layers.0.mlp.experts' (sort) cannot be lowered: the accelerator has no such"}
#: Those that are checked by default.
QUICK = ("gcn", "vae")


def test_there_are_ninety_nine():
    assert [len(each) for each in FAMILIES.values()] == [33, 33, 33] and len(NETWORKS) == 99


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK))
                                  for name in NETWORKS])
def test_networks(name):
    if (needed := NETWORKS[name]) != "plain" and not find_spec(needed):
        pytest.skip(f"{needed} is not there")
    machine = accelerator(8, (1, 8), v_words=4096, x_words=4096, w_words=4096)
    if name in REFUSED:
        with pytest.raises(LoweringError, match=f"^{re.escape(REFUSED[name])}"):
            check(*network(name), machine)
    else:
        check(*network(name), machine)


@pytest.mark.slow
def test_the_command_tells_what_differs(tmp_path, capsys):
    out = tmp_path / "networks.json"
    assert networks.main(["gcn", "fnet", "--rows", "8", "--block", "1,8", "--json", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"gcn: [\d,]+ numbers, 0 differ; [\d,]+ cycles, [\d.]+% of the peak, formula [\d,]+; [\d.]+ s",
                        lines[0])
    assert lines[1] == f"fnet: {REFUSED['fnet']}" and lines[2].startswith("1 of 2 lowered; ")
    data = json.loads(out.read_text())
    assert list(data) == ["plain", "counts", "tools"] and data["counts"]["plain"]["lowered"] == 1
    assert data["plain"]["fnet"]["cycles"] is None and data["plain"]["gcn"]["differ"] == 0


def test_wrong_names():
    with pytest.raises(OptionError, match=r"^NAME must be one of torchvision, .*, fnet, not 'resnet9'$"):
        networks.prepare(parsed("resnet9"))


@pytest.mark.skipif(find_spec("transformers") is not None, reason="transformers is there")
def test_what_is_missing_is_said():
    line = "transformers is missing; install it with: pip install 'hbfp[experiments]'"
    with pytest.raises(OptionError, match=f"^NAME of a network of transformers: {re.escape(line)}$"):
        networks.prepare(parsed("bert"))


def parsed(*words):
    """The command's arguments."""
    return networks.make_parser().parse_args(list(words))
