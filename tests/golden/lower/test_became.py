"""What nodes of a graph become: every instruction is one node's, and the picture has a box for each that has some.

Covers: golden/lower/command.py, golden/lower/picture.py.
"""

import json
import re
import xml.etree.ElementTree as xml
from collections import Counter

import pytest
import torch

from golden.__main__ import main
from golden.lower import picture
from golden.lower.lowering import lower

from .test_lowering import accelerator

FILE = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return (self.second(torch.relu(self.first(x))) + x).reshape(2, 2, 8).softmax(-1)


def model():
    return Net()


def inputs():
    return (torch.ones(4, 8),)
"""


class Attention(torch.nn.Module):
    """Whose softmax stands beneath the product of the values."""

    def __init__(self):
        super().__init__()
        self.q, self.v = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        v = self.v(x)
        return (self.q(x) @ x.mT).softmax(-1) @ v


@pytest.fixture(scope="module")
def made():
    return lower(Attention(), (torch.randn(12, 8),), accelerator(8, (1, 8)))


def test_every_instruction_is_one_nodes(made):
    places = Counter(number for each in made.became for number in range(each.first, each.stop))
    assert set(places) == set(range(len(made.program.instructions) - 1)) and set(places.values()) == {1}
    names = [each.node for each in made.became]
    assert len(set(names)) == len(names) and all(each.owner in names for each in made.became if each.owner)
    assert sum(part.macs for each in made.became for part in each.products) == sum(
        each.macs for each in made.program.layers)


def test_a_softmax_is_its_products(made):
    softmax = next(each for each in made.became if each.operation == "softmax")
    owner = next(each for each in made.became if each.node == softmax.owner)
    assert owner.layer == "v" and owner.counts["vector"]
    assert softmax.text == f"with {owner.node}"


def test_the_picture(made, tmp_path):
    files = [tmp_path / "graph.svg", tmp_path / "again.svg", tmp_path / "graph.png"]
    for file in files:
        picture.draw(file, "attention on a machine", ["x"], made.became)
    texts = [each.text for each in xml.parse(files[0]).iter() if each.tag.endswith("}text")]
    assert {"x", "linear, softmax, add_bias", "linear_1, add_bias_1", "linear_3"} <= set(texts)
    assert files[0].read_bytes() == files[1].read_bytes() and files[2].read_bytes().startswith(b"\x89PNG")


def test_the_command(tmp_path, capsys):
    file, out, drawn = tmp_path / "net.py", tmp_path / "graph.json", tmp_path / "graph.png"
    file.write_text(FILE)
    assert main(["lower", str(file), "--rows", "8", "--block", "1,8", "--json", str(out), "--picture", str(drawn)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r" +x +input +4x8", line) for line in lines)
    assert any(re.match(r" second +linear_1 +linear +4x8x8; ", line) for line in lines)
    assert any(re.match(r" +add +add +with linear_1 +4x8", line) for line in lines)
    assert lines[-1] == f"picture:  {drawn}" and drawn.exists() and lines[-2].startswith("8 nodes, ")
    data = json.loads(out.read_text())
    becomes = {each["node"]: each["becomes"] for each in data["nodes"]}
    assert data["inputs"] == {"x": [4, 8]} and data["outputs"] == ["softmax"] and becomes["view"] == "view"
    assert data["nodes"][0]["products"] == [{"rows": 4, "terms": 8, "columns": 8, "count": 1}]


def test_pictures_have_two_kinds(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["lower", "x", "--picture", "graph.pdf"])
    assert stop.value.code == 2
    assert capsys.readouterr().err == "python -m golden: error: --picture graph.pdf: must end in .png or .svg\n"
