"""Every command that a page or a command's help shows is accepted, up to where its work would begin."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

import synth.tools.library
from golden.study.published import generate
from hbfp import command
from hbfp.isa.instructions import Instruction, Opcode
from hbfp.program import Program
from hbfp.system import Accelerator
from tests.commands import COMMANDS, ROOT, documented, stand_in_tools
from tests.synth.tiny import ADDING

LINES = documented()
#: Names of files on the pages that a user has, or that another command on the same page has written.
LIBRARIES = ("cells.lib", "a.lib", "b.lib", "build/lib/osu018_stdcells.lib", "NangateOpenCellLibrary.lib",
             "build/lib/NangateOpenCellLibrary_typical.lib", "NangateOpenCellLibrary_typical.lib",
             "slow.lib", "fast.lib")
PROGRAMS = ("network.hbfp", "net.program")
NETWORK = """\
import collections

import torch

BATCH = 16


def model(trial=None):
    layers = {"spectrum": torch.nn.Linear(16, 8), "relu": torch.nn.ReLU(), "last": torch.nn.Linear(8, 2)}
    return torch.nn.Sequential(collections.OrderedDict(layers))


def loss(output, classes):
    return torch.nn.functional.cross_entropy(output, classes)


def inputs():
    return (torch.ones(4, 16),)


def data():
    x = torch.randn(64, 16, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 0).long()
    return x[:32], y[:32], x[32:], y[32:]


def batches():
    x, y, *_ = data()
    yield x[:BATCH], y[:BATCH]


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1)
"""
#: Command -> options behind those of a line, with which it is done soon; other commands have tests of their own.
SMALL = {
    ("gen",): ["--out", "made"], ("golden", "error"): ["--elements", "1000"], ("golden", "schedule"): [],
    ("golden", "space"): [], ("golden", "silicon"): [], ("golden", "dispatch"): ["--requests", "2000"],
    ("golden", "program"): [], ("golden", "run"): [], ("golden", "perf"): [], ("golden", "layers"): [],
    ("golden", "lower"): [],
    ("golden", "tune"): ["--trials", "2", "--epochs", "1"], ("golden", "train"): ["--epochs", "1"],
    ("golden", "sweep"): ["--epochs", "1", "--seeds", "1", "--widths", "8", "--jobs", "1"],
    ("synth",): ["--rows", "8", "--cols", "8", "--recipe", "generic", "--jobs", "1"],
}
#: Words of a line -> what stands for them in a small one.
INSTEAD = {"resnet20": "mine.py", "docs/examples/gpt2.py": "mine.py"}
#: What a small line cannot have: tools that not every machine has, or a host.
NEEDS = {"--timing", "--period", "--equal-clock", "--liberty", "--scheduler", "--constants", "--help"}


def filled_place(folder):
    """Write all that the pages name, as seen from ``folder``, the current one."""
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / "build/lib").mkdir(parents=True)
    for n, name in enumerate(LIBRARIES):
        Path(name).write_text(ADDING.replace("tiny", f"tiny{n}", 1))
    Path("design.toml").write_text("rows = 4\nblock = [1, 4]\n")
    Path("mine.py").write_text(NETWORK)
    Path("area.json").write_text(json.dumps({
        "system": Accelerator().as_dict(), "logic": 1e6, "memories": 1.2, "library": None, "recipe": "area",
        "components": [{"name": "elements", "logic": 1e5}]}))
    generate.GENERATORS["cifar10"](folder / "cifar")
    generate.GENERATORS["words"](folder / "penn", train="ptb.train.txt", test="ptb.test.txt")
    for name in PROGRAMS:
        Program(accelerator=Accelerator(), limit=128, memory=(), instructions=(Instruction(Opcode.HALT, {}),),
                tensors={}, layers=()).save(name)


@pytest.fixture(scope="module")
def shared_place(tmp_path_factory):
    """The folder of :func:`filled_place`, for lines that end before they write."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(generate, "IMAGES", 1)
        filled_place(folder)
    before = sorted(folder.rglob("*"))
    yield folder
    assert sorted(folder.rglob("*")) == before


@pytest.fixture
def place(shared_place, tmp_path, request, monkeypatch):
    """A folder with all that the pages name, of a test's own if it runs a line, and the tools that not all machines
    have."""
    folder = shared_place
    if request.node.get_closest_marker("slow"):
        folder = tmp_path / "place"
        shutil.copytree(shared_place, folder, symlinks=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(synth.tools.library, "OSU018", folder / "build/lib/osu018_stdcells.lib")
    stand_in_tools(monkeypatch)
    return folder


def start_of(words):
    """The first words of a command of ours, None of another module."""
    return next((words[:count] for count in (2, 1) if words[:count] in COMMANDS), None)


def test_pages_are_read():
    """What stands in blocks, in backticks and in help, with comments and without."""
    shown = {words for _, words, _ in LINES}
    assert {("synth", "--mantissa", "8", "--side-lanes", "4"), ("synth",), ("cosim", "run", "mine.py", "--rows", "16",
            "--mantissa", "4", "--check", "layers"), ("synth", "--side-lanes", "4")} <= shown
    assert {start for _, words, _ in LINES if (start := start_of(words))} == {*COMMANDS}
    assert len(shown) > 150


@pytest.mark.parametrize("where, words, status", LINES, ids=[" ".join(words) for _, words, _ in LINES])
def test_documented_line_is_accepted(place, monkeypatch, capsys, where, words, status):
    start = start_of(words)
    if start is None or start == words and any(not action.option_strings for action in COMMANDS[start][1]._actions):
        assert find_spec(words[0]) or words == ("golden",)    # a module, or a name without what it needs
        return
    monkeypatch.setattr(command, "perform", lambda job: 0)
    try:
        ended = COMMANDS[start][0](list(words[1:]))
    except SystemExit as stop:
        ended = stop.code
    assert ended == status, (where, capsys.readouterr().err)


def runs(words):
    """Whether a line can be run, small."""
    start = start_of(words)
    return start in SMALL and not NEEDS & {*words} and (
        start != words or all(action.option_strings for action in COMMANDS[start][1]._actions))


@pytest.mark.slow
@pytest.mark.parametrize("words", [words for where, words, _ in LINES
                                   if runs(words) and not where.startswith("figures ")], ids=" ".join)
def test_documented_line_runs(place, words):
    start = start_of(words)
    assert COMMANDS[start][0]([*(INSTEAD.get(word, word) for word in words[1:]), *SMALL[start]]) == 0
