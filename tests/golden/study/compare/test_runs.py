"""Runs of a format: seeds together or alone, stopped or not, give the same numbers; and those that PyTorch gives."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree

import golden.nn as gn
from golden.study.compare import user
from golden.study.compare.choice import Choice
from golden.study.compare.runs import Work, digest, pruned, run
from golden.study.compare.user import User

FILE = '''
import torch
from torch import nn

def model():
    return nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 5))

def loss(output, classes):
    return nn.functional.cross_entropy(output, classes)

def batches():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 20, generator=generator)
    yield from zip(x.split(10), (x[:, :5].argmax(1)).split(10))

def optimiser(parameters):
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)
'''
METRIC = '''
def metric(net):
    """accuracy, %"""
    x, y = next(iter(batches()))
    return (net(x).argmax(1) == y).double().mean().item() * 100
'''


RATES = '''
def schedule(optimiser):
    return torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.8)

def clip():
    return 0.05
'''


@pytest.fixture
def work(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return Work(text=str(path), digest=digest(str(path)), seeds=(0, 1), epochs=3)


def by_hand(work, name, seed):
    """Losses of a seed's training, and its weights, in PyTorch alone."""
    made = {}
    exec(compile(Path(work.text).read_text(), "mine.py", "exec"), made)
    torch.manual_seed(seed)
    net, batches, losses = made["model"](), list(made["batches"]()), []
    choice = Choice.of(name)
    if choice.formats is not None:
        gn.convert(net, choice.formats, seed=1 + 1000 * seed)
    optimiser = made["optimiser"](net.parameters())
    schedule = made["schedule"](optimiser) if "schedule" in made else None
    for epoch in range(work.epochs):
        order = torch.randperm(len(batches), generator=torch.Generator().manual_seed(seed * 100_003 + epoch))
        for place in order.tolist():
            x, y = batches[place]
            optimiser.zero_grad()
            loss = made["loss"](net(x), y)
            loss.backward()
            if "clip" in made:
                torch.nn.utils.clip_grad_norm_(net.parameters(), made["clip"]())
            optimiser.step()
            if schedule:
                schedule.step()
            losses.append(loss.item())
    return losses, net, made


@pytest.mark.parametrize("name", ["fp32", "hbfp6", "hbfp4-sr", "mxfp4", "int8-token", "bf16", "hbfp8@fp24"])
def test_every_seed_is_as_alone(work, tmp_path, name):
    torch.set_num_threads(1)
    found = run(work, name, tmp_path)
    assert found["together"] == "one job"
    for seed, curve, value in zip(work.seeds, found["curves"], found["values"], strict=True):
        losses, net, made = by_hand(work, name, seed)
        assert curve == losses
        net.eval()
        with torch.no_grad():
            judged = [made["loss"](net(x), y).item() for x, y in made["batches"]()]
        assert value == sum(judged) / len(judged)
    alone = run(replace(work, seeds=(0,)), name, tmp_path)
    assert alone["curves"][0] == found["curves"][0] and alone["values"][0] == found["values"][0]


@pytest.mark.parametrize("name", ["fp32", "hbfp6"])
def test_rates_and_norms_of_gradients(work, tmp_path, name):
    Path(work.text).write_text(FILE + RATES)
    found, plain = run(work, name, tmp_path), by_hand(work, name, 1)[0]
    Path(work.text).write_text(FILE)
    assert found["curves"][1] == plain != by_hand(work, name, 1)[0]


@pytest.mark.parametrize("name", ["hbfp4-sr", "hbfp4+6", "2:4-hbfp6", "nvfp4+mxfp8"])
def test_stopped_runs_go_on(work, tmp_path, name):
    Path(work.text).write_text(FILE + RATES)
    whole = run(work, name, tmp_path / "a")
    (tmp_path / "b").mkdir()

    class Stop(BaseException):
        pass

    def stop(done, total):
        if done == 10:
            raise Stop
    with pytest.raises(Stop):
        run(work, name, tmp_path / "b", every=0, progress=stop)
    assert list((tmp_path / "b").glob("*.pt"))
    begun = []
    again = run(work, name, tmp_path / "b", progress=lambda done, total: begun.append(done))
    assert begun[0] == 10 and {**whole, "seconds": 0} == {**again, "seconds": 0}
    assert not list((tmp_path / "b").glob("*.pt"))
    assert run(work, name, tmp_path / "b") == again                      # read, not trained


def test_a_boost_is_of_the_last_epoch_and_of_the_ends(tmp_path, monkeypatch):
    path, seen, plain = tmp_path / "mine.py", [], gn.FormatSchedule.apply
    path.write_text(FILE.replace("nn.Linear(24, 5)", "nn.Linear(24, 24), nn.Linear(24, 5)"))
    monkeypatch.setattr(gn.FormatSchedule, "apply", lambda self, layers, epoch: (
        plain(self, layers, epoch), seen.append([layer.formats.x.mantissa for _, layer in layers])))
    run(Work(text=str(path), digest=digest(str(path)), epochs=3), "hbfp4_1x16+6", tmp_path)
    assert seen == [[6, 4, 6], [6, 4, 6], [6, 6, 6]]


@pytest.mark.parametrize("name", ["fp32", "hbfp4", "mxfp4", "2:4-hbfp6", "hbfp6-2:4", "50%-int8", "50%-fp32",
                                  "int8-static", "2:4-fp8:w=hbfp6_1x8-clipped"])
def test_learned_weights_are_judged(work, tmp_path, name):
    work = replace(work, post=True)
    torch.set_num_threads(1)
    run(work, "fp32", tmp_path)
    found = run(work, name, tmp_path)
    choice = Choice.of(name)
    for seed, value in zip(work.seeds, found["values"], strict=True):
        _, net, made = by_hand(work, "fp32", seed)
        for layer in (net[0], net[2]):
            w = layer.weight.detach()
            if choice.after:
                w = gn.quantise(w, choice.formats.w)
            if choice.sparsity:
                layer.weight.data = pruned(w, choice.sparsity)
                zeros = (layer.weight == 0).view(-1)
                assert zeros.float().mean() >= 0.5
        if choice.formats is not None:
            gn.convert(net, choice.formats)
        if choice.reach:
            gn.calibrate(net, [x for x, _ in made["batches"]()], reach=choice.reach)
        with torch.no_grad():
            judged = [made["loss"](net(x), y).item() for x, y in made["batches"]()]
        assert value == sum(judged) / len(judged)
    assert bool(found["curves"][0]) == (name == "fp32")


def test_checkpoints(work, tmp_path):
    _, net, _ = by_hand(work, "fp32", 3)
    torch.save(net.state_dict(), tmp_path / "net.pt")
    work = replace(work, post=True, seeds=(0,), checkpoint=str(tmp_path / "net.pt"))
    values = [run(work, name, tmp_path)["values"][0] for name in ("fp32", "hbfp8", "hbfp3")]
    assert abs(values[0] - values[1]) < abs(values[0] - values[2])
    torch.save({"other": torch.zeros(3)}, tmp_path / "other.pt")
    with pytest.raises(ValueError, match="^Checkpoint .*other.pt is not of this model: RuntimeError: Error"):
        run(replace(work, checkpoint=str(tmp_path / "other.pt")), "hbfp4", tmp_path)


def test_the_error_of_the_output_where_nothing_is_said(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(FILE.partition("def loss")[0] + "def inputs():\n    return torch.ones(3, 20),\n")
    work = Work(text=str(path), digest=digest(str(path)), post=True)
    values = {name: run(work, name, tmp_path)["values"][0] for name in ("fp32", "hbfp8", "hbfp4")}
    assert values["fp32"] == 0 < values["hbfp8"] < values["hbfp4"] < 0.5


def test_signal_to_noise_is_that_of_errors(work, tmp_path):
    work = replace(work, seeds=(0,))
    found = run(work, "hbfp4", tmp_path)["qsnr"]
    _, net, made = by_hand(work, "hbfp4", 0)
    x, y = next(iter(made["batches"]()))
    operands = gn.errors(net, x, loss=lambda out: made["loss"](out, y)).operands
    g = [each for each in operands if each.role == "g"]
    assert len(g) == 3 and found["g"] == pytest.approx(10 * torch.tensor(
        sum(e.signal for e in g) / sum(e.noise for e in g)).log10().item(), rel=1e-5)
    assert set(found) == {"x", "w", "g", "all"} and run(work, "fp32", tmp_path)["qsnr"] is None


def test_pruned():
    w = torch.tensor([[[[1.0, 5.0]], [[2.0, 6.0]], [[3.0, 7.0]], [[4.0, 8.0]]]])          # (1, 4, 1, 2)
    assert pruned(w, "2:4").tolist() == [[[[0, 0]], [[0, 0]], [[3, 7]], [[4, 8]]]]          # channel by channel
    assert pruned(w, "50%").tolist() == [[[[0, 5]], [[0, 6]], [[0, 7]], [[0, 8]]]]


def test_what_cannot_be_a_job_trains_one_by_one(work, tmp_path):
    path = Path(work.text)
    path.write_text(FILE.replace("nn.ReLU()", "nn.Dropout(0.5)"))
    found = run(work, "hbfp6", tmp_path)
    assert found["together"].startswith("Dropout at '1' must be golden.nn.fused.SeededDropout")
    alone = run(replace(work, seeds=(1,)), "hbfp6", tmp_path)
    assert alone["curves"][0] == found["curves"][1]
    twice = FILE.replace("yield from zip(x.split(10),", "yield from zip(zip(x.split(10), x.split(10)),")
    path.write_text(twice.replace(
        "nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 5))", "Two()").replace("def model", '''
class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(20, 5)

    def forward(self, a, b):
        return self.layer(a + b)

def model''', 1))
    assert run(replace(work, digest="other"), "hbfp6", tmp_path)["together"] == "A job takes one input, not 2"


@pytest.mark.parametrize("own, why", [
    ("self.scale.weight.sum(1) * self.layer(x)", "In a job the model does not run: "),
    ("self.layer(x - x.mean(0))", "In a job the model gives other numbers"),
    ("self.layer(x - x.mean(0) if torch.is_grad_enabled() else x)", "In a job the model gives other numbers"),
    ("hooked(self.layer(x), lambda g: g / len(g))", "In a job the model gives other numbers")])
def test_what_a_job_would_change_trains_one_by_one(work, tmp_path, own, why):
    """A model whose code reads a parameter of a part, or looks at other samples, with gradients or in them."""
    path = Path(work.text)
    path.write_text(FILE.replace("nn.Sequential(nn.Linear(20, 24), nn.ReLU(), nn.Linear(24, 5))", "Own()").replace(
        "def model", f'''
def hooked(y, hook):
    if y.requires_grad:
        y.register_hook(hook)
    return y

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(20, 5), nn.Embedding(5, 5)

    def forward(self, x):
        return {own}

def model''', 1))
    found = run(work, "hbfp6", tmp_path)
    assert found["together"].startswith(why)
    alone = run(replace(work, seeds=(1,)), "hbfp6", tmp_path)
    assert alone["curves"][0] == found["curves"][1]


def test_a_model_that_does_not_run_is_one_line(work, tmp_path):
    path = Path(work.text)
    path.write_text(FILE.replace("nn.Linear(24, 5)", "nn.Linear(25, 5)"))
    message = r"Model .*mine.py does not run in hbfp6: ValueError: Shapes of input and .*25\)"
    with pytest.raises(ValueError, match=f"^{message}$"):
        run(replace(work, seeds=(0,)), "hbfp6", tmp_path)


def test_results_are_json(work, tmp_path):
    found = run(work, "hbfp8", tmp_path)
    assert json.loads(json.dumps(found)) == found


def test_another_device(work, monkeypatch):
    """Models, batches and what is shown of them are there; a metric gives and gets tensors of the CPU."""
    Path(work.text).write_text(FILE + METRIC)
    there, gone = User.read(work.text, device="meta"), []

    def recorded(given, device):
        gone.append(device)
        return _pytree.tree_map_only(torch.Tensor, lambda each: torch.ones_like(each, device=device), given)
    monkeypatch.setattr(user, "moved", recorded)           # the numbers of "meta" do not come back
    net, (inputs, targets) = there.model(0), there.sample()
    assert {each.device.type for each in (*inputs, *targets, *net.parameters())} == {"meta"}
    gone.clear()
    assert there.judge(net, None) >= 0 and gone == ["meta", "cpu"]
    assert net(inputs[0]).is_meta and not net._forward_hooks and not net._forward_pre_hooks


def test_devices_have_results_of_their_own(work):
    """Those of another are not read."""
    choice = Choice.of("hbfp8")
    assert len({replace(work, device=name).key(choice) for name in ("cpu", "cuda")} | {work.key(choice)}) == 2
