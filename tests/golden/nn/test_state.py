"""Noise of modules: drawn in training alone, repeated by activation checkpointing, saved and loaded, made anew."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop  # noqa: E402

import golden.nn as gn  # noqa: E402

NOISY = gn.HBFPFormat(mantissa=4, block=(1, 8), rounding="stochastic")


class Net(torch.nn.Module):
    """A layer, dropout and own code, in two parts that may be checkpointed."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Dropout(0.2))
        self.second = Own()
        self.how = None

    def forward(self, x):
        for part in (self.first, self.second, self.first):
            x = part(x) if self.how is None else checkpoint(part, x, **self.how)
        return x


class Own(torch.nn.Module):
    """Own products, two with one noise."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return torch.tanh(x @ self.weight) @ self.weight.mT


def train(net, steps=2):
    """Outputs, gradients and noise of some steps."""
    torch.manual_seed(7)
    x = torch.randn(5, 8, requires_grad=True)
    found = []
    for _ in range(steps):
        net.zero_grad()
        x.grad = None
        y = net(x)
        y.square().sum().backward()
        found += [y.detach(), x.grad.clone(), *(p.grad.clone() for p in net.parameters())]
    return found + [v.clone() for name, v in net.state_dict().items() if "noise" in name]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_repeats_the_noise(reentrant):
    """The same bits as without; dropout is off: checkpointing takes numbers from torch's generator."""
    plain = gn.convert(Net(), NOISY)
    saving = copy.deepcopy(plain)
    plain.first[2].p = saving.first[2].p = 0.0
    saving.how = {"use_reentrant": reentrant}
    want, got = train(plain), train(saving)
    assert len(want) == len(got) > 10 and all(torch.equal(a, b) for a, b in zip(want, got, strict=True))
    assert not torch.equal(*[v for name, v in saving.state_dict().items() if "noise" in name][:2])


def test_checkpointing_with_dropout_is_consistent():
    """The pass that runs again gives what the first gave."""
    net = gn.convert(Net(), NOISY)
    net.how = {"use_reentrant": False}
    x = torch.randn(5, 8)
    y = net(x)
    seen = []
    net.second.register_forward_hook(lambda module, inputs, output: seen.append(output.detach().clone()))
    with set_checkpoint_early_stop(False):
        z = net(x)
        z.sum().backward()
    assert len(seen) == 2 and torch.equal(*seen) and not torch.equal(y, z)


def test_checkpointing_that_cannot_repeat_is_refused():
    net = gn.convert(Net(), NOISY)
    net.how = {"use_reentrant": False, "preserve_rng_state": False}
    y = net(torch.randn(5, 8, requires_grad=True))
    with pytest.raises(RuntimeError, match="^A forward pass with stochastic rounding runs again during the backward "
                                           "pass, and its noise is not known; checkpointing needs "
                                           "preserve_rng_state=True$"):
        y.sum().backward()


def test_evaluation_rounds_to_nearest():
    net = gn.convert(Net(), NOISY).eval()
    near = gn.convert(copy.deepcopy(net), gn.HBFPFormat(mantissa=4, block=(1, 8))).eval()
    x, state = torch.randn(5, 8), copy.deepcopy(net.state_dict())
    assert torch.equal(net(x), net(x)) and torch.equal(net(x), near(x))
    assert all(torch.equal(v, state[name]) for name, v in net.state_dict().items())
    net.first[2].p = 0.0
    assert not torch.equal(net.train()(x), net(x))


def test_checkpoints_both_ways():
    plain, noisy = Net(), gn.convert(Net(), NOISY)
    noisy.first[0].weight.data.zero_()
    noisy(torch.randn(5, 8))
    before = {name: v.clone() for name, v in noisy.state_dict().items() if "noise" in name}
    assert set(before) == {"noise_state", "first.0.noise_state", "second.noise_state"}
    noisy.load_state_dict(plain.state_dict())                  # FP32 into stochastic: the noise runs on
    assert torch.equal(noisy.first[0].weight, plain.first[0].weight)
    assert all(torch.equal(noisy.state_dict()[name], v) for name, v in before.items())
    near = gn.convert(Net(), "hbfp4")
    near.load_state_dict(noisy.state_dict())                   # stochastic into one without noise
    plain.load_state_dict(gn.weights(noisy))                   # and into torch's own
    with pytest.raises(RuntimeError, match="Missing key"):
        noisy.load_state_dict({})


def test_noise_of_other_lanes_is_refused():
    state = gn.convert(Net(), NOISY).state_dict()
    other = gn.convert(Net(), gn.HBFPFormat(mantissa=4, block=(1, 32), rounding="stochastic"))
    with pytest.raises(RuntimeError, match="size mismatch for first.0.noise_state"):
        other.load_state_dict(state)


def test_noise_starts_where_meta_ends():
    with torch.device("meta"):
        net = Net()
    gn.convert(net, NOISY, seed=5)
    assert net.first[0].noise_state.is_meta and net(torch.empty(3, 8, device="meta")).shape == (3, 8)
    net.to_empty(device="cpu")
    net.load_state_dict(Net().state_dict())
    want = gn.convert(Net(), NOISY, seed=5)
    for part in (net, want):
        part.first[2].p = 0.0
    x = torch.randn(3, 8)
    assert torch.equal(net(x), want(x))
