"""A job of several models gives the bits of the models trained one by one.

Covers: golden/nn/fused/attention.py, golden/nn/fused/compiled_updates.py, golden/nn/fused/convolution.py.
Covers: golden/nn/fused/dropout.py.
Covers: golden/nn/fused/each.py, golden/nn/fused/job.py.
Covers: golden/nn/fused/layers.py, golden/nn/fused/linear.py, golden/nn/fused/loop.py, golden/nn/fused/loss.py.
Covers: golden/nn/fused/parameters.py, golden/nn/fused/pointwise.py, golden/nn/fused/products.py.
Covers: golden/nn/fused/step.py, golden/nn/fused/updates.py.
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
    (mlp, (7, 64), 10, 4), (Attention, (5, 4, 6), 4, 2), (Words, (6, 5), 4, 4), (convolutional, (4, 3, 12, 12), 4, 2),
    pytest.param(mlp, (24, 64), 10, 100, marks=pytest.mark.slow),
    pytest.param(Attention, (5, 4, 6), 4, 100, marks=pytest.mark.slow),
    pytest.param(Words, (6, 5), 4, 100, marks=pytest.mark.slow),
    pytest.param(convolutional, (4, 3, 12, 12), 4, 100, marks=pytest.mark.slow)])
def test_job_equals_serial_runs(build, shape, classes, steps):
    for one, other in zip(serial(build, shape, classes, steps), together(build, shape, classes, steps), strict=True):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            assert torch.equal(a, b), name
            assert not a.is_floating_point() or a.isfinite().all()


class Encoder(torch.nn.Module):
    """A layer of torch's transformer under a causal mask."""

    def __init__(self, index):
        super().__init__()
        self.embed = torch.nn.Linear(6, 16)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, 0, torch.nn.functional.relu, batch_first=True)
        self.head = torch.nn.Linear(16, 4)

    def forward(self, x):
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.head(self.layer(self.embed(x), src_mask=mask).mean(1))


class Recurrent(torch.nn.Module):
    """Nested outputs: a sequence, and a tuple of states whose second dimension is the batch."""

    def __init__(self, index):
        super().__init__()
        self.words = torch.nn.Embedding(9, 12, padding_idx=4)
        self.lstm = torch.nn.LSTM(12, 8, 2, batch_first=True)
        self.gru = torch.nn.GRU(8, 8, batch_first=True)
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        y, (h, c) = self.lstm(self.words((x * 2).round().clamp(-4, 4).long() + 4))
        y, _ = self.gru(y, h[:1] + c[1:])
        return self.head(self.norm(y[:, -1] + h[-1]))


def lines(index):
    return torch.nn.Sequential(torch.nn.Conv1d(3, 8, 3, padding=1), torch.nn.BatchNorm1d(8, momentum=None),
                               torch.nn.SiLU(), torch.nn.AvgPool1d(2), torch.nn.ConvTranspose1d(8, 4, 3, 2),
                               torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(52, 4))


def planes(index):
    return torch.nn.Sequential(torch.nn.Conv2d(4, 8, 3, groups=2), torch.nn.Sigmoid(),
                               torch.nn.ConvTranspose2d(8, 4, 3, 2, bias=False), torch.nn.MaxPool2d(2),
                               torch.nn.BatchNorm2d(4, affine=False, track_running_stats=False),
                               torch.nn.AdaptiveAvgPool2d(3), torch.nn.Softplus(), torch.nn.Flatten(),
                               fused.SeededDropout(0.1 * index, index), torch.nn.Linear(36, 4, bias=False))


#: Optimiser -> options of three models.
OPTIMISERS = {
    "SGD": (torch.optim.SGD, [dict(lr=0.1), dict(lr=0.05), dict(lr=0.1, weight_decay=0.01)]),
    "SGD, momentum": (torch.optim.SGD, [dict(lr=0.1, momentum=0.9, dampening=0.1), dict(lr=0.1, momentum=0.5),
                                        dict(lr=0.1, momentum=0.5, weight_decay=0.01)]),
    "SGD, Nesterov": (torch.optim.SGD, [dict(lr=0.1 * m, momentum=m, nesterov=True) for m in (0.9, 0.9, 0.5)]),
    "Adam": (torch.optim.Adam, [dict(lr=0.01), dict(lr=0.02, betas=(0.8, 0.99)), dict(eps=1e-4, weight_decay=0.01)]),
    "AdamW": (torch.optim.AdamW, [dict(lr=0.01), dict(lr=0.01, weight_decay=0.2), dict(betas=(0.5, 0.9))]),
    "Adadelta": (torch.optim.Adadelta, [dict(), dict(lr=0.5, rho=0.8), dict(eps=1e-4, weight_decay=0.01)])}


def both(build, shape, kind, hbfp, steps=4):
    """Three models alone, and as a job; their optimisers; the job's step."""
    optimiser, options = OPTIMISERS[kind]
    sides, owns, update = [], [], None
    for side in range(2):
        models = []
        for index in range(3):
            torch.manual_seed(index)
            models.append(build(index))
            if hbfp:
                fmt = gn.HBFPFormat(mantissa=(8, 4, 6)[index], block=((1, 16), (8, 8), (1, 8))[index])
                gn.convert(models[-1], fmt, seed=index)
        own = [optimiser(model.parameters(), **o) for model, o in zip(models, options, strict=True)]
        data = [list(batches(shape, 4, index, steps)) for index in range(3)]
        if side:
            job = fused.fuse(models)
            update = fused.Step(job, own)
        for step in range(steps):
            xs, ts = zip(*(part[step] for part in data), strict=True)
            if side:
                update.zero_grad()
                fused.cross_entropy(job(torch.cat(xs)), torch.cat(ts), 3).backward()
                update()
                continue
            for model, one, x, t in zip(models, own, xs, ts, strict=True):
                one.zero_grad()
                torch.nn.functional.cross_entropy(model(x), t).backward()
                one.step()
        sides.append(models)
        owns.append(own)
    return *sides, owns, update


def assert_equal_states(models, others):
    for one, other in zip(models, others, strict=True):
        for (name, a), b in zip(one.state_dict().items(), other.state_dict().values(), strict=True):
            assert torch.equal(a, b), name
            assert not a.is_floating_point() or a.isfinite().all()


@pytest.mark.parametrize("hbfp", [False, True], ids=["FP32", "HBFP"])
@pytest.mark.parametrize("build, shape, kind", [
    (mlp, (8, 64), "SGD"), (mlp, (5, 64), "SGD, momentum"), (Encoder, (8, 4, 6), "Adam"), (Encoder, (3, 5, 6), "AdamW"),
    (Recurrent, (4, 5), "Adadelta"), (lines, (4, 3, 12), "SGD, Nesterov"), (planes, (4, 4, 8, 8), "AdamW")])
def test_every_layer_and_optimiser_equals_models_alone(build, shape, kind, hbfp):
    alone, joined, (own, other), update = both(build, shape, kind, hbfp)
    assert update.joint
    assert_equal_states(alone, joined)
    for one, two in zip(own, other, strict=True):
        for a, b in zip(one.state_dict()["state"].values(), two.state_dict()["state"].values(), strict=True):
            assert a.keys() == b.keys()
            for name in a:
                assert (a[name] is None and b[name] is None) or torch.equal(a[name], b[name]), name


def test_optimisers_may_go_on_alone_and_be_loaded():
    """The joint update takes over a state that was loaded, and leaves one with which torch's own steps go on."""
    alone, joined, (own, other), update = both(mlp, (5, 64), "Adam", False, steps=2)
    for one in other:
        one.load_state_dict(copy.deepcopy(one.state_dict()))
    for turn in range(4):
        for models in (alone, joined):
            for index, model in enumerate(models):
                torch.manual_seed(turn)
                model.zero_grad()
                targets = torch.tensor([0, 1, 2, 3, index])
                torch.nn.functional.cross_entropy(model(torch.randn(5, 64)), targets).backward()
        for one in own:
            one.step()
        if turn == 1:
            for one in other:
                one.step()
        else:
            update()
        assert_equal_states(alone, joined)


def test_gradients_add_up_and_freeze_as_alone():
    models, twins = ([mlp(torch.manual_seed(i)) for i in range(3)] for _ in range(2))
    for model in (*models, *twins):
        model[0].requires_grad_(False)
    job, x = fused.fuse(twins), torch.randn(3 * 8, 64)
    for _ in range(2):
        for model, part in zip(models, x.chunk(3), strict=True):
            model(part).square().sum().backward()
        job(x).square().sum().backward()
    for model, twin in zip(models, twins, strict=True):
        for a, b in zip(model.parameters(), twin.parameters(), strict=True):
            assert (a.grad is None and b.grad is None) or torch.equal(a.grad, b.grad)


@pytest.mark.parametrize("change", ["nothing", "in place", "another", "missing", "added up"])
def test_gradients_that_somebody_has_changed(change):
    def gradients(models):
        """What a user does between the backward pass and the step, to the second model alone."""
        weight = models[1][0].weight
        if change == "in place":
            weight.grad.mul_(0.5)
        elif change == "another":
            weight.grad = weight.grad * 0.5
        elif change == "missing":
            weight.grad = None
    x, t = torch.randn(2, 3 * 4, 64, generator=torch.Generator().manual_seed(0)), torch.arange(12) % 10
    sides = []
    for joint in (False, True):
        models = [gn.convert(mlp(i), gn.HBFPFormat(block=(1, 16))) for i in range(3) if torch.manual_seed(i)]
        optimisers = [torch.optim.SGD(model.parameters(), 0.1, momentum=0.9) for model in models]
        step = fused.Step(job := fused.fuse(models), optimisers)
        for own in x:
            step.zero_grad()
            for _ in range(2 if change == "added up" else 1):
                if joint:
                    fused.cross_entropy(job(own), t, 3).backward()
                else:
                    for model, a, b in zip(models, own.chunk(3), t.chunk(3), strict=True):
                        torch.nn.functional.cross_entropy(model(a), b).backward()
            gradients(models)
            if joint:
                step()
            else:
                for optimiser in optimisers:
                    optimiser.step()
        sides.append(models)
    for one, other in zip(*sides, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a, b)


def test_one_layer_in_two_places_and_one_weight_in_two_layers():
    class Tied(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = self.b = torch.nn.Linear(8, 8)
            self.c = torch.nn.Linear(8, 8, bias=False)
            self.c.weight = self.a.weight

        def forward(self, x):
            return self.c(self.b(self.a(x)))
    models, twins = ([Tied() for _ in range(3)] for _ in range(2))
    for model, twin in zip(models, twins, strict=True):
        twin.load_state_dict(model.state_dict())
    job, x = fused.fuse(twins), torch.randn(3 * 8, 8)
    job(x).square().sum().backward()
    for model, twin, part in zip(models, twins, x.chunk(3), strict=True):
        model(part).square().sum().backward()
        assert torch.equal(model.a.weight.grad, twin.a.weight.grad) and twin.c.weight is twin.a.weight


def test_models_stay_alive_after_an_older_job():
    """Fused again, without one of them, models and optimisers go on with their values."""
    alone, joined, (own, other), _ = both(mlp, (5, 64), "Adam", False, steps=2)
    job = fused.fuse(joined[1:])
    update, x, t = fused.Step(job, other[1:]), torch.randn(10, 64), torch.randint(10, (10,))
    update.zero_grad()
    fused.cross_entropy(job(x), t, 2).backward()
    update()
    for model, one, a, b in zip(alone[1:], own[1:], x.chunk(2), t.chunk(2), strict=True):
        one.zero_grad()
        torch.nn.functional.cross_entropy(model(a), b).backward()
        one.step()
    assert_equal_states(alone, joined)


def test_schedulers_and_hooks_serve(recwarn):
    models = [gn.convert(mlp(i)) for i in range(2)]
    own = [torch.optim.SGD(model.parameters(), 0.1, momentum=0.9) for model in models]
    job = fused.fuse(models)
    update = fused.Step(job, own)
    rates = [torch.optim.lr_scheduler.StepLR(one, 1) for one in own]
    fused.cross_entropy(job(torch.randn(4, 64)), torch.randint(10, (4,)), 2).backward()
    update()
    for rate in rates:
        rate.step()
    assert not recwarn.list and own[0].param_groups[0]["lr"] == pytest.approx(0.01)
    gn.wide_weights(own[1])                            # a hook: the optimisers make their own steps
    update()
    store = models[1][0].weight.detach().clone()
    gn.wide_weights(torch.optim.SGD(models[1].parameters(), 0.1))
    assert torch.equal(store, models[1][0].weight)


@pytest.mark.parametrize("limit", ["PATCHES", "WEIGHTS"])
def test_large_images_and_weights_take_turns(monkeypatch, limit):
    """Patches too large for memory, or weights for which calls count for little: the same bits, model by model."""
    from golden.nn.fused import convolution
    nets = [gn.convert(convolutional(i), gn.HBFPFormat(mantissa=4, block=(1, 8)), seed=i) for i in range(2)]
    job, x = fused.fuse(copy.deepcopy(nets)), torch.randn(8, 3, 12, 12)
    twin = fused.fuse(nets)
    job(x).square().sum().backward()
    monkeypatch.setattr(convolution, limit, 0)
    monkeypatch.setattr(convolution._Convolution, "apply", None)
    twin(x).square().sum().backward()
    for model, other in zip(job.models, twin.models, strict=True):
        for a, b in zip(model.parameters(), other.parameters(), strict=True):
            assert torch.equal(a.grad, b.grad)


def test_seed_dropout():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.25), torch.nn.Sequential(torch.nn.Dropout(0.5)))
    fused.seed_dropout(net, 7)
    assert [(part.p, part.seed) for part in (net[1], net[2][0])] == [(0.25, 7), (0.5, 8)]


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
     r"^Layer at '0' must have batch_first=True to run in a job$"),
    (lambda: [torch.nn.LSTM(2, 2, 2, batch_first=True, dropout=0.5)],
     r"^Layer at the top must have dropout=0 to run in a job, not 0.5$"),
    (lambda: [torch.nn.Sequential(torch.nn.Dropout2d(0.1))],
     (r"^Dropout2d at '0' draws from torch's one generator, in another order in a job; "
      r"golden.nn.fused.SeededDropout has its own$")),
    (lambda: [torch.nn.Sequential(torch.nn.Conv2d(1, 1, 3, stride=s)) for s in (1, 2)],
     r"^Models must have one architecture; stride of '0' differs: \(1, 1\), \(2, 2\)$"),
    (lambda: [torch.nn.Sequential(torch.nn.Linear(2, 2)), torch.nn.Sequential(gn.HBFPLinear(2, 2))],
     r"^Models must have one architecture; they differ at '0'$"),
    (lambda: [torch.nn.Linear(2, 2)] * 2, r"^Models must be different objects$"),
    (lambda: [Listed(), Listed()],
     (r"^Listed at the top holds layers or tensors in 'every', outside its modules, where a job cannot join them; "
      r"make it a ModuleList or ParameterList$"))])
def test_wrong_models(models, message):
    with pytest.raises(ValueError, match=message):
        fused.fuse(models())


class Listed(torch.nn.Module):
    """Layers in a plain list beside the modules."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(2, 2)
        self.every = [self.a]


def test_wrong_shapes_of_a_loss():
    with pytest.raises(ValueError, match=r"^Shapes of logits and targets must be \(2 \* N, classes\) and \(2 \* N,\), "
                                         r"not \(3, 4\) and \(3,\)$"):
        fused.cross_entropy(torch.randn(3, 4), torch.zeros(3).long(), 2)


def test_wrong_batch():
    with pytest.raises(ValueError, match=r"^Batch must be a multiple of the 2 models, not 3$"):
        fused.fuse([mlp(0), mlp(1)])(torch.ones(3, 64))


def test_wrong_dropout():
    with pytest.raises(ValueError, match=r"^p must be 0 to below 1, not 1$"):
        fused.SeededDropout(1)
