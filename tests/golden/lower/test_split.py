"""Layers of a model on the host, between programs: the bits of both, what is moved, and what is refused.

Covers: golden/lower/hosted.py, cosim/accelerator/hosted.py, cosim/command/hosted.py.
"""

import json
import random
import re
from dataclasses import replace

import pytest
import torch
from torch import nn

from cosim.accelerator.hosted import run
from cosim.command.run import main as run_network
from cosim.emit import emit_accelerator
from golden.__main__ import main
from golden.lower.errors import LoweringError
from golden.lower.graph import reference
from golden.lower.lowering import lower
from golden.lower.split import lower_split

from .test_lowering import accelerator

MACHINE = accelerator(8, (1, 8))


class Waves(nn.Module):
    """Two results: one that no accelerator here has, and one that it has in other bits."""

    def forward(self, x):
        return torch.fft.fft(x).real, torch.exp(x)


class Filter(nn.Module):
    """Its path depends on values, and so does the shape that it gives."""

    def forward(self, x, limit=0.0):
        return x[x.abs().sum(-1) > limit] if x.sum() > -1000 else x


class Head(nn.Module):
    """A layer before the waves."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.first(x))


class Middle(nn.Module):
    """A layer that takes what they give."""

    def __init__(self):
        super().__init__()
        self.second = nn.Linear(8, 8)

    def forward(self, x, a, b):
        return self.second(a + x).softmax(-1) * b


class Net(nn.Module):
    """The result of its head goes around the waves, and one of theirs is a result of its own."""

    def __init__(self):
        super().__init__()
        self.head, self.middle, self.last = Head(), Middle(), nn.Linear(8, 8)
        self.waves, self.filter = Waves(), Filter()

    def forward(self, x):
        x = self.head(x)
        a, b = self.waves(x)
        y = self.middle(x, a, b)
        return self.last(self.filter(y, limit=1.3)), y, b


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(3)
    return Net().eval(), torch.randn(12, 8)


@pytest.fixture(scope="module")
def split(net):
    return lower_split(net[0], (net[1],), MACHINE, ["waves", "filter"])


def test_bits_are_those_of_each_part_by_itself(net, split):
    net, x = net
    with torch.no_grad():
        x = reference(net.head, MACHINE)(x)
        a, b = net.waves(x)
        y = reference(net.middle, MACHINE)(x, a, b)
        kept = net.filter(y, limit=1.3)
        wanted = {"add_bias_2": reference(net.last, MACHINE)(kept), "mul": y, "getitem_1": b}
    assert 0 < len(kept) < 12 and split.outputs == list(wanted)
    expected = split.expected | {name: torch.from_numpy(values) for part in split.parts
                                 for name, values in part.lowered.expected.items()}
    assert all(torch.equal(expected[name], values) for name, values in wanted.items())
    found = run(None, split, layers=True)
    totals = [*(each.total for each in found.runs), *found.host.values()]
    assert len(totals) == 4 and all(each.compared and not each.mismatches for each in totals)
    assert (found.read, found.written) == (2 * 12 * 32, (2 * 12 + len(kept)) * 32)


def test_the_host_computes_with_what_the_accelerator_gives(split):
    """Another weight in the first program is seen behind the host, up to where its filter gives another shape."""
    first = split.parts[0].lowered
    memory = [replace(each, data=bytes(b ^ 0x40 for b in each.data)) for each in first.program.memory]
    changed = replace(first, program=replace(first.program, memory=memory))
    found = run(None, replace(split, parts=[replace(split.parts[0], lowered=changed), *split.parts[1:]]))
    assert len(found.runs) == 2 and all(each.total.mismatches for each in found.runs)


@pytest.mark.slow
def test_on_the_verilog(split):
    found = run(emit_accelerator(MACHINE), split, layers=True)
    assert not any(each.total.mismatches for each in (*found.runs,)) and len(found.runs) == 3
    assert all(each.total.compared and each.model == each.result.times for each in found.runs)


def test_a_layer_that_is_called_twice_and_one_at_either_end(net):
    class Ends(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.body, self.round = nn.Embedding(5, 8), nn.Linear(8, 8), nn.Hardsigmoid()

        def forward(self, words):
            return self.round(self.body(self.round(self.words(words))))
    split = lower_split(Ends(), (torch.tensor([[1, 4, 2]]),), MACHINE, ["words", "round"])
    assert [host.layer for part in split.parts for host in part.hosts] == ["words", "round", "round"]
    assert [part.lowered is None for part in split.parts] == [True, True, False]
    found = run(None, split)
    assert found.runs[0].total.compared == 24 and not found.runs[0].total.mismatches
    assert not any(each.mismatches for each in found.host.values()) and len(found.host) == 1


class Tied(nn.Module):
    """Which reads the weight of a layer and never calls it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return nn.functional.linear(self.b(x), self.a.weight if hasattr(self.a, "weight") else self.b.weight)


class Complex(nn.Module):
    """Whose layer gives complex numbers."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), Waves()
        self.b.forward = torch.fft.fft

    def forward(self, x):
        return self.a(self.b(x).real)


class Chance(nn.Module):
    """Of its two results one is another each time."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return self.last(self.first(x)), x * random.random()


def test_each_result_is_held_to_the_model():
    with pytest.raises(LoweringError, match="^The model cannot be lowered: it gives other numbers than torch's graph"):
        lower_split(Chance().eval(), (torch.ones(4, 8),), MACHINE, ["last"])


@pytest.mark.parametrize("model, names, line", [
    (Net, ["x"], "Exclude must match a layer of the model, not 'x'"),
    (Net, ["*"], "Exclude must match parts of the model, not all of it"),
    (Tied, ["a"], "Exclude must name layers that the model calls, not 'a'; the one that it is in would do"),
    (lambda: nn.TransformerEncoderLayer(8, 2, 8), ["self_attn.out_proj"],
     "Exclude must not match 'self_attn.out_proj', a part of 'self_attn', which is converted whole"),
    (Complex, ["b"], ("Layer 'b' on the host gives complex64, which the accelerator cannot take; the layer that takes "
     "it, too, would do")),
    (Net, [], ("Layer 'filter' cannot be lowered: neither torch.export nor torch.fx traces it (Could not guard on "
     "data-dependent expression")),
    (Net, ["filter"], ("Layer 'waves' (fft_r2c) cannot be lowered: the accelerator has no such operation; a model "
     "without it would do, and so would --exclude waves, which runs that layer on the host"))])
def test_refusals(model, names, line):
    with pytest.raises(ValueError, match=f"^{re.escape(line)}") as found:
        if names:
            lower_split(model().eval(), (torch.ones(4, 8),), MACHINE, names)
        else:
            lower(model().eval(), (torch.ones(4, 8),), MACHINE)
    assert "\n" not in str(found.value)
    if not names:
        assert str(found.value).endswith("; a forward whose path does not depend on values would do, and so would "
                                         "--exclude filter, which runs that layer on the host")
        assert isinstance(found.value, LoweringError)


FILE = """\
from tests.golden.lower.test_split import Net, torch


def model():
    torch.manual_seed(3)
    return Net()


def inputs():
    return (torch.ones(4, 8),)
"""

SMALL = ["--rows", "8", "--block", "1,8", "--exclude", "filter", "--exclude", "waves"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return path


def test_cosim_run(file, tmp_path, capsys):
    out = tmp_path / "out.json"
    words = [str(file), *SMALL, "--machine", "--quiet", "--json", str(out)]
    assert run_network(words) == 0
    *_, host, last = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"on the host: waves, filter; 256 bytes read, \d+ written, its time not counted", host)
    assert re.fullmatch(r"[\d,]+ numbers of 3 programs compared with PyTorch, 0 differ: passed", last)
    data = json.loads(out.read_text())
    assert data["hosts"] == ["waves", "filter"] and data["read"] == 256 and data["passed"]


def test_golden_perf(file, tmp_path, capsys):
    out = tmp_path / "out.json"
    assert main(["perf", str(file), *SMALL, "--json", str(out)]) == 0
    data = json.loads(out.read_text())
    assert [row["name"] for row in data["layers"] if row["macs"]] == ["head.first", "middle.second", "last"]
    assert data["cycles"] == sum(row["cycles"] for row in data["layers"]) and data["read"] == 256
    assert f"on the host: waves, filter; 256 bytes read, {data['written']} written" in capsys.readouterr().out


@pytest.mark.parametrize("part, words, message", [
    ("cosim run", ["x", "--beside", "y"], ("--beside must not be given with --exclude, which makes several "
     "programs")),
    ("golden", ["perf", "x", "--train"], "--train must not be given with --exclude, which makes several programs")])
def test_what_is_of_one_program(part, words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        {"cosim run": run_network, "golden": main}[part]([*words, "--exclude", "z"])
    assert stop.value.code == 2 and capsys.readouterr().err == f"python -m {part}: error: {message}\n"
