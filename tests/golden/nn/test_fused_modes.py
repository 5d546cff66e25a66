"""Jobs of converted models in evaluation, with own products, and with calls that no fused layer serves.

Covers: golden/nn/fused/own.py.
"""

import copy
import itertools

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402
from golden.nn import fused  # noqa: E402
from tests.cases import sweep  # noqa: E402

ROWS = gn.HBFPFormat(mantissa=4, block=(1, 8))
NOISY = gn.HBFPFormat(mantissa=4, block=(1, 8), rounding="stochastic")
TILES = gn.HBFPFormat(mantissa=3, block=(4, 4))


class Own(torch.nn.Module):
    """Attention in the model's own code, with layers around."""

    def __init__(self):
        super().__init__()
        self.project, self.head = torch.nn.Linear(8, 24), torch.nn.Linear(8, 4)

    def forward(self, x):
        q, k, v = self.project(x).chunk(3, -1)
        return self.head((q @ k.mT).softmax(-1) @ v)


class Rows(torch.nn.Module):
    """Own code without products around layers that have them."""

    def __init__(self):
        super().__init__()
        self.body, self.inner = torch.nn.Linear(8, 8), Own()

    def forward(self, x):
        return self.inner(x + self.body(x).relu())


class Attention(torch.nn.Module):
    """Attention under a mask."""

    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(-1)
        if not torch.is_grad_enabled():
            mask[0] = True                             # a query that takes part in nothing: its gradient is NaN
        return self.attention(x, x, x, attn_mask=mask)[0]


def convolution(**options):
    return lambda: torch.nn.Sequential(torch.nn.Conv2d(8, 16, 3, **options), torch.nn.ReLU(), torch.nn.Conv2d(16, 4, 1))


def linear():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


#: Model -> shape of one model's batch.
NETS = {"linear": (linear, (3, 5, 8)), "attention": (Attention, (3, 5, 8)), "own": (Own, (3, 5, 8)),
        "nested": (Rows, (3, 5, 8)), "convolution": (convolution(padding=1, stride=2), (3, 8, 6, 5)),
        "same": (convolution(padding="same"), (3, 8, 6, 5)), "groups": (convolution(groups=2), (3, 8, 6, 5)),
        "reflect": (convolution(padding=1, padding_mode="reflect"), (3, 8, 6, 5))}
#: What the three models are converted to.
KINDS = {"alike": [(ROWS, {})] * 3,
         "widths": [(ROWS, {}), (gn.HBFPFormat(mantissa=6, block=(1, 16)), {}), ("hbfp8", {})],
         "noise": [(NOISY, {})] * 3, "noise beside": [(ROWS, {}), (NOISY, {}), (TILES, {})], "tiles": [(TILES, {})] * 3,
         "quick": [(ROWS, {"order": "quick"})] * 3, "aligned": [(ROWS, {"accumulate": "aligned"})] * 3,
         "emulator": [(gn.HBFPFormat(mantissa=4, block=(24, 24)), {"mode": "emulator"})] * 3}


def models(build, kind):
    made = []
    for index, (fmt, options) in enumerate(KINDS[kind]):
        torch.manual_seed(index)
        made.append(gn.convert(build(), fmt, seed=10 * index, **options))
    return made


def assert_same(job, alone, x, training):
    """Outputs, gradients and noise of a job are those of the models alone."""
    job.train(training)
    inputs = x.clone().requires_grad_()
    y = job(inputs)
    y.square().sum().backward()
    for model, twin, part, own, gradient in zip(alone, job.models, x.chunk(3), y.chunk(3), inputs.grad.chunk(3),
                                                strict=True):
        part = part.clone().requires_grad_()
        want = model.train(training)(part)
        want.square().sum().backward()
        assert torch.equal(own, want) and torch.equal(gradient, part.grad)
        for (name, a), b in zip(model.named_parameters(), twin.parameters(), strict=True):
            assert torch.equal(a.grad, b.grad), name
            a.grad = b.grad = None
        assert all(torch.equal(a, b) for a, b in zip(model.buffers(), twin.buffers(), strict=True))
    with torch.no_grad():
        assert torch.equal(job(x), torch.cat([model(part) for model, part in zip(alone, x.chunk(3), strict=True)]))


@pytest.mark.parametrize("net, kind", sweep(5, itertools.product(NETS, KINDS)))
def test_training_and_evaluation_equal_models_alone(net, kind):
    build, shape = NETS[net]
    alone = models(build, kind)
    job = fused.fuse(copy.deepcopy(alone))
    for step, training in enumerate((True, False, True)):
        torch.manual_seed(step)
        assert_same(job, alone, torch.randn(9, *shape[1:]), training)


def test_formats_of_own_products_change():
    """A schedule changes what a module's own code multiplies in; equal formats part, and meet again."""
    alone = models(Rows, "alike")
    job, x = fused.fuse(copy.deepcopy(alone)), torch.randn(9, 5, 8)
    before = job(x)
    for widths in ((3, 3, 3), (3, 6, 8), (7, 7, 7)):
        for group in (alone, job.models):
            for model, mantissa in zip(group, widths, strict=True):
                for _, part in gn.hbfp_layers(model, own=True):
                    part.formats = part.formats.with_mantissa(mantissa)
        assert_same(job, alone, x, True)
    assert not torch.equal(before, job(x))


def test_own_products_run_once_where_they_can(monkeypatch):
    calls, forward = [], Own.forward
    monkeypatch.setattr(Own, "forward", lambda self, x: calls.append(len(x)) or forward(self, x))
    for kind, want in (("alike", [9, 9]), ("widths", [9, *[3] * 6]), ("noise", [9, *[3] * 6]),
                       ("tiles", [9, *[3] * 6])):
        calls.clear()
        job = fused.fuse(models(Own, kind))
        job(torch.randn(9, 5, 8))
        job(torch.randn(9, 5, 8))
        assert calls == want


class Uses(torch.nn.Module):
    """Everything that a forward pass changes comes before the product."""

    def __init__(self):
        super().__init__()
        self.drop, self.norm, self.body = fused.SeededDropout(0.5, 3), torch.nn.BatchNorm1d(5), torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.body(self.norm(self.drop(x)))
        return y @ y.mT


def test_what_ran_before_an_own_product_is_put_back():
    """The pass that finds that models multiply alone leaves no trace: noise, statistics, dropout."""
    for kind in ("noise", "noise beside", "widths"):
        alone = models(Uses, kind)
        job = fused.fuse(copy.deepcopy(alone))
        for step in range(2):
            torch.manual_seed(step)
            assert_same(job, alone, torch.randn(9, 5, 8), True)


def test_own_code_without_products_runs_once(monkeypatch):
    calls, forward = [], Rows.forward
    monkeypatch.setattr(Rows, "forward", lambda self, x: calls.append(len(x)) or forward(self, x))
    job, x = fused.fuse(models(Rows, "noise beside")), torch.randn(9, 5, 8)
    job(x)
    job(x)
    assert calls == [9, 9]


def test_inputs_changed_before_an_own_product_are_refused():
    class Changes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.act = torch.nn.ReLU(inplace=True)

        def forward(self, x):
            return self.act(x) @ x.mT
    job = fused.fuse([gn.convert(Changes(), fmt) for fmt in ("hbfp8", "hbfp4")])
    with pytest.raises(RuntimeError, match="^A module of a job must not change its input in place before it multiplies "
                                           "in formats that differ between the models$"):
        job(torch.randn(4, 5, 8))


def test_checkpointing_repeats_the_noise_of_a_job():
    from torch.utils.checkpoint import checkpoint
    x, found = torch.randn(9, 5, 8), []
    for run in (lambda job: job(x), lambda job: checkpoint(job, x, use_reentrant=False)):
        torch.manual_seed(1)
        job = fused.fuse(models(linear, "noise"))
        run(job).square().sum().backward()
        found.append([p.grad for model in job.models for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_scope_that_differs_in_seed_alone_is_the_same_architecture():
    twins = [gn.convert(Own(), ROWS, seed=seed, strict=seed == 1) for seed in (1, 2)]
    assert fused.fuse(twins).count == 2


@pytest.mark.parametrize("widths", [(4, 4), (4, 6)])
@pytest.mark.parametrize("put", [lambda: torch.nn.Linear(8, 4), lambda: torch.nn.Sequential(torch.nn.Linear(8, 4))])
def test_plain_layer_put_into_a_converted_model(put, widths):
    """It multiplies in HBFP there, alone and in a job, and so do its gradients."""
    def make(index):
        torch.manual_seed(index)
        net = gn.convert(Rows(), gn.HBFPFormat(mantissa=widths[index], block=(1, 8)))
        net.inner.head = put()
        return net
    x, nets = torch.randn(6, 3, 8), [make(0), make(1)]
    alone = copy.deepcopy(nets)
    want = torch.cat([net(part) for net, part in zip(alone, x.chunk(2), strict=True)])
    want.sin().sum().backward()
    got = fused.fuse(nets)(x)
    got.sin().sum().backward()
    assert torch.equal(got, want)
    for one, other in zip(alone, nets, strict=True):
        for a, b in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(a.grad, b.grad)


class Everything(torch.nn.Module):
    """One of each layer that a job has a way of its own for, and own products."""

    def __init__(self):
        super().__init__()
        self.conv, self.large = torch.nn.Conv2d(1, 4, 3), torch.nn.Conv2d(4, 4, 3, padding_mode="circular", padding=1)
        self.rows, self.attention = torch.nn.Linear(4, 8), Attention()
        self.own, self.out = Own(), torch.nn.Linear(4, 3)

    def forward(self, x):
        y = self.rows(self.large(self.conv(x)).flatten(2).mT)
        return self.out(self.own(self.attention(y)))


@pytest.mark.parametrize("fmts", [("hbfp8", "hbfp8"), ("hbfp8", "hbfp4"), (NOISY, NOISY)])
def test_report_of_a_job_adds_up_to_those_of_its_models(fmts):
    torch.manual_seed(0)
    nets = [gn.convert(Everything(), fmt) for fmt in fmts]
    x = torch.randn(4, 1, 5, 5)
    alone = [gn.report(net, part) for net, part in zip(nets, x.chunk(2), strict=True)]
    job = fused.fuse(nets)
    nets[0].own.eval()
    before = [part.training for whole in (job, *nets) for part in whole.modules()]
    found = gn.report(job, x)
    assert [part.training for whole in (job, *nets) for part in whole.modules()] == before

    def sums(reports):
        done = {}
        for entry in (entry for report in reports for entry in report.entries):
            key = "matmul" if entry.operation in ("matmul", "linear") else entry.operation, entry.format
            done[key] = done.get(key, 0) + entry.flops
        return done
    assert sums([found]) == sums(alone) and not found.left
    assert {"net.rows", "net.conv", "net.out"} <= {entry.layer for entry in found.entries}
