"""A job of several models gives the bits of the models trained one by one.

Covers: golden/nn/fused/dropout.py, golden/nn/fused/job.py, golden/nn/fused/linear.py.
Covers: golden/nn/fused/loss.py, golden/nn/fused/step.py.
"""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn import fused  # noqa: E402

#: Eight configurations: (mantissa, block, rounding, learning rate, optimiser).
MIXED = [(8, (1, 16), "rne", 0.1, "sgd"), (4, (1, 16), "rne", 0.05, "sgd"), (6, (16, 16), "rne", 0.02, "adam"),
         (4, (1, 8), "stochastic", 0.01, "adamw"), (16, (24, 24), "rne", 0.1, "sgd"),
         (3, (1, 64), "truncate", 0.2, "sgd"), (8, (8, 8), "stochastic", 0.05, "sgd"),
         (2, (1, 16), "rne", 0.003, "adamw")]


def optimiser_of(model, kind, rate):
    match kind:
        case "sgd":
            return torch.optim.SGD(model.parameters(), rate, momentum=0.9, weight_decay=1e-4)
        case "adam":
            return torch.optim.Adam(model.parameters(), rate)
        case "adamw":
            return torch.optim.AdamW(model.parameters(), rate)


def scheduler_of(optimiser, index):
    if index % 2:
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 100)
    return torch.optim.lr_scheduler.StepLR(optimiser, 30, 0.5)


def make(build, index):
    mantissa, block, rounding, rate, kind = MIXED[index]
    torch.manual_seed(index)
    model = gn.convert(build(index), gn.HBFPFormat(mantissa=mantissa, block=block, rounding=rounding), seed=100 * index)
    optimiser = optimiser_of(model, kind, rate)
    return model, optimiser, scheduler_of(optimiser, index)


def batches(shape, classes, index, steps):
    generator = torch.Generator().manual_seed(1000 + index)
    for _ in range(steps):
        yield torch.randn(shape, generator=generator), torch.randint(classes, (shape[0],), generator=generator)


def serial(build, shape, classes, steps):
    models = []
    for index in range(len(MIXED)):
        model, optimiser, scheduler = make(build, index)
        for step, (x, t) in enumerate(batches(shape, classes, index, steps)):
            boost(model, index, step, steps)
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x), t).backward()
            optimiser.step()
            scheduler.step()
        models.append(model)
    return models


def boost(model, index, step, steps):
    """Every third model changes its mantissas in mid-training."""
    if index % 3 == 0 and step == steps // 2:
        for _, layer in gn.hbfp_layers(model):
            layer.formats = layer.formats.with_mantissa(5)


def together(build, shape, classes, steps):
    models, optimisers, schedulers = zip(*(make(build, index) for index in range(len(MIXED))), strict=True)
    job = fused.fuse(models)
    update = fused.Step(job, optimisers)
    for step, parts in enumerate(zip(*(batches(shape, classes, i, steps) for i in range(len(MIXED))), strict=True)):
        for index, (model, optimiser) in enumerate(zip(models, optimisers, strict=True)):
            boost(model, index, step, steps)
            optimiser.zero_grad()
        x, t = (torch.cat(side) for side in zip(*parts, strict=True))
        fused.cross_entropy(job(x), t, job.count).backward()
        update()
        for scheduler in schedulers:
            scheduler.step()
    return models


def mlp(index):
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 10))


class Attention(torch.nn.Module):
    """Embedding, attention and dropout."""

    def __init__(self, index):
        super().__init__()
        self.embed = torch.nn.Linear(6, 16)
        self.attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)
        self.norm = torch.nn.LayerNorm(16)
        self.drop = fused.SeededDropout(0.2, seed=index)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        y = self.embed(x)
        y = self.norm(y + self.drop(self.attention(y, y, y, need_weights=False)[0]))
        return self.head(torch.nn.functional.gelu(y).amax(1))


class Words(torch.nn.Module):
    """Embedding of rounded inputs."""

    def __init__(self, index):
        super().__init__()
        self.words = torch.nn.Embedding(9, 12)
        self.act = torch.nn.Tanh()
        self.head = torch.nn.Linear(12, 4)

    def forward(self, x):
        return self.head(self.act(self.words((x * 2).round().clamp(-4, 4).long() + 4)).amax(1))


def convolutional(index):
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
                               torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 8, 3, stride=2), torch.nn.GELU(),
                               torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), fused.SeededDropout(0.1, index),
                               torch.nn.Linear(8, 4))


@pytest.mark.parametrize("build, shape, classes, steps", [
    (mlp, (24, 64), 10, 100), (mlp, (7, 64), 10, 6), (Attention, (5, 4, 6), 4, 6), (Words, (6, 5), 4, 6),
    (convolutional, (4, 3, 12, 12), 4, 6), pytest.param(Attention, (5, 4, 6), 4, 100, marks=pytest.mark.slow),
    pytest.param(Words, (6, 5), 4, 100, marks=pytest.mark.slow),
    pytest.param(convolutional, (4, 3, 12, 12), 4, 100, marks=pytest.mark.slow)])
def test_job_equals_serial_runs(build, shape, classes, steps):
    for one, other in zip(serial(build, shape, classes, steps), together(build, shape, classes, steps), strict=True):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            assert torch.equal(a, b), name
            assert not a.is_floating_point() or a.isfinite().all()


def test_joint_step_equals_eight_steps():
    decays, models = [0, 1e-3] * 4, [[gn.convert(mlp(torch.manual_seed(i))) for i in range(8)] for _ in range(2)]
    own = [[torch.optim.SGD(m.parameters(), 0.01 * (i + 1), momentum=0.9, weight_decay=decays[i])
            for i, m in enumerate(side)] for side in models]
    jobs = [fused.fuse(side) for side in models]
    update = fused.Step(jobs[1], own[1])
    assert update.joint
    for round_ in range(20):
        x, t = torch.randn(8 * 4, 64), torch.randint(10, (32,))
        for job, optimisers in zip(jobs, own, strict=True):
            for i, optimiser in enumerate(optimisers):
                if job is jobs[0]:
                    optimiser.zero_grad()
                optimiser.param_groups[0]["lr"] = 0.01 * (i + 1) / (1 + round_)
            if job is jobs[1]:
                update.zero_grad()
            fused.cross_entropy(job(x), t, 8).backward()
        for optimiser in own[0]:
            optimiser.step()
        update()
    for a, b, c, d in zip(*models, *own, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))
        for p, q in zip(c.state_dict()["state"].values(), d.state_dict()["state"].values(), strict=True):
            assert torch.equal(p["momentum_buffer"], q["momentum_buffer"])


def test_wrong_optimisers():
    job = fused.fuse([gn.convert(mlp(i)) for i in range(2)])
    with pytest.raises(ValueError, match=r"^Optimisers must be 2, one per model, not 1$"):
        fused.Step(job, [torch.optim.SGD(job.models[0].parameters(), 0.1)])


def test_models_of_a_job_work_alone():
    models = [gn.convert(mlp(i)) for i in range(3)]
    job = fused.fuse(models)
    x = torch.randn(5, 64)
    assert torch.equal(job(x, shared=True), torch.cat([model(x) for model in models]))
    twin = copy.deepcopy(models[1])
    assert torch.equal(twin(x), models[1](x))


def test_losses_have_the_gradients_of_the_serial_ones():
    x, t = torch.randn(3 * 7, 10, requires_grad=True), torch.randint(10, (21,))
    fused.cross_entropy(x, t, 3).backward()
    want = []
    for a, b in zip(x.detach().chunk(3), t.chunk(3), strict=True):
        a = a.clone().requires_grad_()
        torch.nn.functional.cross_entropy(a, b).backward()
        want.append(a.grad)
    assert torch.equal(x.grad, torch.cat(want))
    y, z = torch.randn(6, 2), torch.randn(6, 2)
    total = sum(torch.nn.functional.mse_loss(a, b) for a, b in zip(y.chunk(3), z.chunk(3), strict=True))
    assert torch.allclose(fused.mse_loss(y, z, 3), total)


def test_row_sums_are_in_ascending_order():
    from golden.fast import kernels
    x = np.array([[[1e8], [1.0], [-1e8], [1.0]]], np.float32)
    assert kernels.row_sums(x).tolist() == [[1.0]]


@pytest.mark.parametrize("models, message", [
    (lambda: [], r"^Models must be at least one, not \[\]$"),
    (lambda: [torch.nn.Linear(2, 2), torch.nn.Linear(2, 3)],
     r"^Models must have one architecture; they differ at 'the top'$"),
    (lambda: [torch.nn.Sequential(torch.nn.Dropout(0.1))],
     r"^Dropout at '0' must be golden.nn.fused.SeededDropout to run in a job$"),
    (lambda: [torch.nn.Sequential(torch.nn.MultiheadAttention(4, 2))],
     r"^Layer at '0' must have batch_first=True to run in a job$")])
def test_wrong_models(models, message):
    with pytest.raises(ValueError, match=message):
        fused.fuse(models())


def test_wrong_batch():
    with pytest.raises(ValueError, match=r"^Batch must be a multiple of the 2 models, not 3$"):
        fused.fuse([mlp(0), mlp(1)])(torch.ones(3, 64))


def test_wrong_dropout():
    with pytest.raises(ValueError, match=r"^p must be 0 to below 1, not 1$"):
        fused.SeededDropout(1)
