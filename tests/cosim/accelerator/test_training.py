"""Training on the Verilated accelerator and on the golden machine: every number of every step, and every cycle.

Covers: cosim/accelerator/placed.py, golden/lower/training/layers.py.
"""

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from cosim.__main__ import main
from cosim.accelerator import host
from cosim.accelerator import training as runs
from cosim.accelerator.device import Device
from cosim.emit import emit_accelerator
from golden.lower.training.source import training
from golden.lower.training.step import lower_step
from golden.perf.accelerator.layers import by_part
from hbfp.format import HBFPFormat
from hbfp.isa.registers import Cause
from tests.cases import sweep

from .built import ACCELERATOR, LEVEL

FILE = """\
import torch
from torch import nn


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 6))


def loss(output, classes):
    return nn.functional.cross_entropy(output, classes)


def batches():
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        yield torch.randn(8, 10, generator=generator), torch.randint(6, (8,), generator=generator)


def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
"""
#: The same with words in place of numbers: of each batch other rows of a table.
WORDS = FILE.replace("nn.Linear(10, 12)", "nn.Embedding(9, 12), nn.Flatten(), nn.Linear(36, 12)").replace(
    "torch.randn(8, 10, generator=generator)", "torch.randint(9, (8, 3), generator=generator)")
#: A layer of a transformer, whose sequences end where the batch says.
ATTENDS = FILE.replace("    return nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 6))", """\
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(10, 2, 12, dropout=0.0, batch_first=True)
            self.classes = nn.Linear(10, 6)

        def forward(self, x, padding):
            return self.classes(self.layer(x, src_key_padding_mask=padding)[:, 0])
    return Model()""").replace("torch.randn(8, 10, generator=generator)", """(
            torch.randn(8, 3, 10, generator=generator),
            torch.arange(3) >= torch.randint(1, 4, (8, 1), generator=generator))""")
#: A strided convolution and one that reads every second pixel, whose phases have one tap, two, four and none.
STRIDED = FILE.replace("    return nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 6))", """\
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.some, self.all = nn.Conv2d(2, 4, 1), nn.Conv2d(4, 8, 1, 2), nn.Conv2d(4, 8, 3, 2, 1)
            self.classes = nn.Linear(48, 6)

        def forward(self, x):
            x = self.first(x)
            return self.classes((self.some(x) * 2 + self.all(x)).flatten(1))
    return Model()""").replace("torch.randn(8, 10,", "torch.randn(8, 2, 5, 4,")
#: The same with all that a host tells a program: rates of a schedule, and what Adam makes of the number of a step.
TOLD = FILE.replace("SGD(parameters, lr=0.1, momentum=0.9)", "AdamW(parameters, lr=0.1, weight_decay=0.1)") + """

def schedule(optimiser):
    return torch.optim.lr_scheduler.LinearLR(optimiser, 0.25, total_iters=2)


def clip():
    return 0.5
"""
#: Weights; numbers of a step: gradient, weight and momentum of every parameter, and the loss.
WEIGHTS = 10 * 12 + 12 + 12 * 6 + 6
NUMBERS = 3 * WEIGHTS + 1
PARTS = ["forward", "backward", "gx", "gw", "update"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return path


def lowered(file, accelerator=ACCELERATOR):
    made = training(str(file))
    return made, lower_step(made.model, made.loss, made.optimiser, next(made.batches()), accelerator,
                            plan=made.plan, clip=made.clip)


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("text", [WORDS, ATTENDS, STRIDED])
def test_others_on_verilog(text, file):
    """What a host writes with a batch, addresses in instructions and gates, reaches the Verilog; phases of a stride."""
    file.write_text(text)
    machine = replace(ACCELERATOR, vector_rows=6)     # so many rows has the gradient of a layer norm
    made, step = lowered(file, machine)
    found = runs.on_verilog(emit_accelerator(machine), step, made.batches(), 3, every=True, level=LEVEL)
    assert found.total.mismatches == 0 and found.total.compared and found.late == []


def test_words_of_each_batch(file):
    """Each batch has addresses of its own; those of another one are found out."""
    file.write_text(WORDS)
    made, step = lowered(file)
    found = runs.on_machine(step, made.batches(), 3, every=True)
    assert found.total.mismatches == 0 and found.total.compared == 3 * (3 * (9 * 12 + 12 * 36 + 12 + 12 * 6 + 6) + 1)
    made, step = lowered(file)
    own = step.host.instructions
    step.host.instructions = lambda batch: own(next(made.batches()))
    assert runs.on_machine(step, made.batches(), 2).total.mismatches


@pytest.mark.cosim
def test_verilog(file):
    """Weights stay in DRAM from step to step, and each step takes the cycles of the model."""
    made, step = lowered(file)
    found = runs.on_verilog(emit_accelerator(ACCELERATOR), step, made.batches(), 3, every=True, level=LEVEL)
    assert (found.total.compared, found.total.mismatches, found.late) == (3 * NUMBERS, 0, [])
    assert [each.view(np.uint32) for each in found.losses] == [each.view(np.uint32) for each in found.wanted]
    cycles = [each.cycles for each in found.results]
    assert cycles == [found.model.cycles] * 3
    parts = by_part(found.rows, 64)
    assert [each["name"] for each in parts] == PARTS
    assert sum(each["cycles"] for each in parts) == sum(each["model_cycles"] for each in parts) == cycles[-1]
    assert {each["name"]: each["macs"] for each in parts} == {
        "forward": 8 * (120 + 72), "backward": 0, "gx": 8 * 72, "gw": 8 * (120 + 72), "update": 0}


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("text", [FILE, STRIDED])
def test_several_arrays_on_verilog(text, file):
    """Four cores of 8 x 8: every number of each step, and every cycle."""
    file.write_text(text)
    machine = replace(ACCELERATOR, arrays=4)
    made, step = lowered(file, machine)
    found = runs.on_verilog(emit_accelerator(machine), step, made.batches(), 3, every=True, level=LEVEL)
    assert found.total.mismatches == 0 and found.total.compared and found.late == []


def dropping(layers, block):
    """The text of a transformer with dropout and Adam, and an accelerator that draws by position."""
    text = ATTENDS.replace("nn.TransformerEncoderLayer(10, 2, 12, dropout=0.0, batch_first=True)",
                           "nn.TransformerEncoder(nn.TransformerEncoderLayer(10, 2, 12, dropout=0.3, batch_first=True),"
                           f" {layers}, enable_nested_tensor=False)").replace(
        "SGD(parameters, lr=0.1, momentum=0.9)", "Adam(parameters, lr=0.01)")
    core = replace(ACCELERATOR.core, format=HBFPFormat(block=block, rounding="stochastic"))
    return text, replace(ACCELERATOR, core=core, vector_rows=8)


@pytest.mark.parametrize(("layers", "block"), [(1, (1, 8)), pytest.param(2, (8, 8), marks=pytest.mark.slow)])
def test_dropout_on_the_machine(layers, block, file):
    """Another part of the key of the step drops other elements."""
    text, accelerator = dropping(layers, block)
    file.write_text(text)
    for wrong in (False, True):
        made, step = lowered(file, accelerator)
        machine = runs.Untimed(step.lowered.program)
        if wrong:
            machine.run = lambda arguments, seed, run=machine.run: run(arguments, seed ^ 1)
        found = runs.train(machine, step, made.batches(), 2, every=True)
        assert (found.total.mismatches > 0) == wrong


@pytest.mark.cosim
@pytest.mark.slow
@pytest.mark.parametrize("block", [(1, 8), (8, 8)])
def test_dropout_on_verilog(block, file):
    """One and two layers of a transformer, with Adam: every number of five steps, and every cycle."""
    for layers in (1, 2):
        text, accelerator = dropping(layers, block)
        file.write_text(text)
        made, step = lowered(file, accelerator)
        found = runs.on_verilog(emit_accelerator(accelerator), step, made.batches(), 5, every=True, level=LEVEL)
        assert found.total.mismatches == 0 and found.total.compared and found.late == []


@pytest.mark.cosim
@pytest.mark.slow
def test_verilog_that_is_stopped(file):
    """By the control register, early, late and while weights are stored: those of the step before are there, and the
    next doorbell does the step.
    """
    file.write_text(TOLD)
    made, step = lowered(file)
    program, manifest = step.lowered.program, emit_accelerator(ACCELERATOR)
    memory = np.empty(host.room(program)[0], np.uint8)
    host.place(program, memory)
    with Device(manifest.verilog, manifest.top, beat=ACCELERATOR.beat, memory=memory, burst=ACCELERATOR.burst,
                level=LEVEL) as device:
        runner, before, cycles = runs.Timed(device, program, host.room(program)[1]), {}, None
        stored = set()
        for number, batch in enumerate(islice(made.batches(), 3)):
            arguments = step.arguments()
            for name, values in step.host.writes(batch).items():
                runner.write(name, values, step.shift(name, arguments))
            for part in (0.3, 0.6, 0.9, 0.98) if cycles else ():
                host.ring(device, replace(program, arguments=arguments))
                assert not device.run(round(part * cycles))
                host.write(device, "control", 2)
                while not device.run(10_000):
                    pass
                assert host.read(device, "cause") == Cause.STOPPED
                stored.add(host.read(device, "store_completed"))
                for name, values in before.items():
                    own = name.removesuffix(" after")
                    found = runner.read(own, step.shift(own, arguments))
                    np.testing.assert_array_equal(found.view(np.uint32), values.view(np.uint32), f"{number} {name}")
            result = runner.run(arguments)
            assert result.cause is None and cycles in (None, result.cycles)
            cycles, expected = result.cycles, step.advance(batch)
            for name, values in expected.items():
                found = runner.read(name, step.shift(name, arguments))
                np.testing.assert_array_equal(found.view(np.uint32), np.ascontiguousarray(values, np.float32).view(
                    np.uint32), f"{number} {name}")
            before = {name: np.array(values, np.float32) for name, values in expected.items()
                      if name.endswith(" after")}
    assert len(before) == 12 and len(stored) > 3


@pytest.mark.cosim
@pytest.mark.slow
def test_verilog_goes_through_nan_and_inf(file):
    """A batch with NaN and one with Inf give PyTorch's bits in the model's cycles, and so do the steps behind them."""
    file.write_text(TOLD)
    made, step = lowered(file)

    def batches():
        for (inputs, targets), value in zip(made.batches(), (1.0, float("inf"), float("nan")), strict=False):
            inputs[0][2, 3] = value
            yield inputs, targets
    found = runs.on_verilog(emit_accelerator(ACCELERATOR), step, batches(), 3, every=True, level=LEVEL)
    assert found.total.mismatches == 0 and found.total.compared and found.late == []
    assert [bool(np.isfinite(loss)) for loss in found.losses] == [True, False, False]


@pytest.mark.cosim
def test_verilog_is_told_rates(file):
    """New rates, clipped gradients, and batches in two places, without another program; cycles stay the model's."""
    file.write_text(TOLD)
    made, step = lowered(file)
    found = runs.on_verilog(emit_accelerator(ACCELERATOR), step, made.batches(), 3, every=True, level=LEVEL)
    assert (found.total.compared, found.total.mismatches, found.late) == (3 * (4 * WEIGHTS + 1), 0, [])


def test_a_step_that_is_told_something_else_is_found(file):
    """Another argument changes weights: that of the step's place, and those of rates."""
    file.write_text(TOLD)
    for place in (None, 0, 2, 3):
        made, step = lowered(file)
        told, batch = list(step.arguments()), next(made.batches())
        if place is not None:
            told[place] = told[place] ^ 1 << 23 if place else len(step.place)
        machine = runs.Untimed(step.lowered.program)
        for name, values in step.host.writes(batch).items():
            machine.write(name, values)
            machine.write(name, -values, len(step.place))
        machine.run(told)
        differ = any((machine.read(name) != values).any() for name, values in step.advance(batch).items())
        assert differ == (place is not None), place


@pytest.mark.parametrize("text", sweep(2, [FILE, TOLD, WORDS]))
def test_layers_of_every_step(text, file):
    """What layers give is torch's in each step, not in the first alone, and is found out where it differs."""
    file.write_text(text)
    made, step = lowered(file)
    inner = {name for name, each in step.lowered.program.tensors.items() if each.role == "inner"}
    first = step.layers(next(made.batches()))
    assert first.keys() == inner and {"relu", "log_softmax", "mul"} <= inner
    for name, values in first.items():
        np.testing.assert_array_equal(values.view(np.uint32), step.lowered.expected[name].view(np.uint32))
    found = runs.on_machine(step, made.batches(), 3, layers=True)
    assert found.total.mismatches == 0 and inner | {"loss", "2.weight after"} <= found.tensors.keys()
    assert found.tensors["relu"].compared == 3 * first["relu"].size
    made, step = lowered(file)
    own, first["relu"] = step.layers, first["relu"] + 1
    step.layers = lambda batch: {**own(batch), "relu": first["relu"]}
    found = runs.on_machine(step, made.batches(), 1, layers=True)
    assert found.tensors["relu"].mismatches and found.total.first[0].startswith("step 0, relu: ")


@pytest.mark.parametrize("role, text", sweep(2, [("x", FILE), ("w", FILE), ("g", FILE), *(
    (role, ATTENDS.replace("dropout=0.0", "dropout=0.3")) for role in "xg")]))
def test_layers_of_every_step_draw_its_numbers(role, text, file):
    """Stacked products, of which heads have other rows than columns, and dropouts, too."""
    file.write_text(text)
    made, machine = training(str(file)), replace(ACCELERATOR, vector_rows=6, core=replace(
        ACCELERATOR.core, format=replace(ACCELERATOR.core.format, rounding="stochastic")))
    step = lower_step(made.model, made.loss, made.optimiser, next(made.batches()), machine, stochastic=(role,))
    found = runs.on_machine(step, made.batches(), 3, layers=True)
    assert found.total.mismatches == 0 and found.tensors["relu"].compared
    assert text == FILE or {"matmul_1", "dropout"} <= found.tensors.keys()


def test_a_wrong_weight_is_found(file):
    made, step = lowered(file)
    machine = runs.Untimed(step.lowered.program)
    weight = machine.read("2.weight")
    weight[3, 5] += 1
    machine.write("2.weight", weight)
    found = runs.train(machine, step, made.batches(), 2)
    assert found.tensors["2.weight after"].mismatches and found.total.first[0].startswith("step 0, loss: 1 of 1 differ")
    assert found.total.compared == NUMBERS + 1


def test_command(file, tmp_path, capsys):
    data, curve = tmp_path / "a.json", tmp_path / "a.png"
    words = ["train", str(file), "--rows", "8", "--block", "1,8", "--steps", "4", "--machine", "--check", "steps"]
    assert main([*words, "--json", str(data), "--curve", str(curve), "--quiet"]) == 0
    found = json.loads(data.read_text())
    assert found["compared"] == 4 * NUMBERS and found["mismatches"] == 0 and found["passed"]
    assert found["steps"] == len(found["losses"]) == 4 and "cycles" not in found
    losses = np.array(found["losses"], np.uint32).view(np.float32)
    assert np.isfinite(losses).all() and len(set(losses.tolist())) == 4
    assert curve.read_bytes()[:4] == b"\x89PNG"
    assert "4 steps: passed" in " ".join(capsys.readouterr().out.split())


def test_what_cannot_be_trained_is_one_line(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("SGD(parameters, lr=0.1, momentum=0.9)", "RMSprop(parameters)"))
    with pytest.raises(SystemExit) as stop:
        main(["train", str(path), "--machine", "--quiet"])
    assert stop.value.code == 2
    assert capsys.readouterr().err.startswith(
        f"python -m cosim train: error: MODEL {path}: The optimiser cannot be lowered: Optimiser RMSprop")


def test_batches_of_two_sizes_are_one_line(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(FILE.replace("range(3)", "(8, 5)").replace("_ in", "size in").replace("8, 10", "size, 10")
                    .replace("(8,)", "(size,)"))
    with pytest.raises(SystemExit):
        main(["train", str(path), "--machine", "--quiet", "--steps", "2"])
    assert "Tensor input of a batch must be float32 of (8, 10) as in the first" in capsys.readouterr().err
