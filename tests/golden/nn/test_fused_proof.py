"""Quicker ways of a job in FP32 are taken where they have torch's bits, and only there.

Covers: golden/fast/alike.py, golden/nn/fused/attention_fp32.py, golden/nn/fused/proof.py.
"""

import copy

import pytest

torch = pytest.importorskip("torch")

from golden.nn import fused  # noqa: E402
from golden.nn.fused import compiled_updates, linear, proof  # noqa: E402
from tests.golden.nn.test_fused import OPTIMISERS, Encoder, assert_equal_states, both, mlp  # noqa: E402


@pytest.fixture(params=["proven", "refused"])
def found(request, monkeypatch):
    """What was asked, by its first word; everything is refused in one case."""
    asked = {}

    class Found(dict):
        def get(self, key):
            asked[key[0][0]] = None
            return False if request.param == "refused" else super().get(key)

    monkeypatch.setattr(proof, "_FOUND", Found())
    return asked


@pytest.mark.parametrize("kind", OPTIMISERS)
def test_optimisers(found, kind, request):
    alone, joined, (own, other), update = both(mlp, (5, 64), kind, False)
    assert update.joint
    assert_equal_states(alone, joined)
    compiled = linear.kernels.library() is not None
    assert found.keys() >= ({"alike", "alike sum"} if compiled else {"product", "sum"})
    assert not compiled or kind == "Adadelta" or "optimiser" in found
    assert "refused" not in request.node.name or found.keys() >= {"product", "sum"}


LATER = torch.ones(5, 5, dtype=torch.bool).triu(1)


class Attention(torch.nn.Module):
    """Attention of a sequence to itself, perhaps masked."""

    def __init__(self, bias=True, **options):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(8, 2, bias=bias, batch_first=True)
        self.head, self.options = torch.nn.Linear(8, 4), options

    def forward(self, x):
        options = {name: LATER if name == "attn_mask" else value for name, value in self.options.items()}
        y, weights = self.attention(x, x, x, **options)
        y = self.head(x + y)
        return y if weights is None else y * weights.sum(-1, keepdim=True)


@pytest.mark.parametrize("options", [
    {"need_weights": False}, {"need_weights": False, "bias": False}, {}, {"need_weights": False, "attn_mask": True},
    {"need_weights": False, "attn_mask": True, "is_causal": True}], ids=lambda options: "-".join(options) or "weights")
@pytest.mark.parametrize("training", [True, False])
def test_attention(found, options, training):
    torch.manual_seed(0)
    models = [Attention(**options).train(training) for _ in range(3)]
    twins = copy.deepcopy(models)
    for p in (p for twin in twins for p in twin.parameters()):
        p.data += 0.1
    for model, twin in zip(models, twins, strict=True):
        model.load_state_dict(twin.state_dict())
    job, x = fused.fuse(twins).train(training), torch.randn(3 * 4, 5, 8, requires_grad=True)
    parts = [part.detach().clone().requires_grad_() for part in x.chunk(3)]
    for model, part in zip(models, parts, strict=True):
        model(part).square().sum().backward()
    job(x).square().sum().backward()
    assert torch.equal(x.grad, torch.cat([part.grad for part in parts]))
    for model, twin in zip(models, twins, strict=True):
        assert all(torch.equal(p.grad, q.grad) for p, q in zip(model.parameters(), twin.parameters(), strict=True))
    fits = training and options.get("need_weights") is False and "attn_mask" not in options
    assert ("attention" in found) == fits
    with torch.no_grad():
        job.eval()
        assert torch.equal(job(x), torch.cat([model.eval()(part) for model, part in zip(models, parts, strict=True)]))


def test_encoder_layers(found):
    alone, joined, _, _ = both(Encoder, (8, 4, 6), "Adam", False)
    assert_equal_states(alone, joined)


def test_another_order_of_additions_is_seen(monkeypatch):
    """Of products, of sums and of an optimiser's step."""
    generator = torch.Generator().manual_seed(0)
    a, b = torch.randn(2, 3, 5), torch.randn(2, 5, 4)
    assert linear._product_proof(linear.together, a, b, None, generator)
    assert not linear._product_proof(lambda a, b, _: torch.bmm(a.flip(2), b.flip(1)), a, b, None, generator)
    assert not linear._product_proof(lambda a, b, _: torch.bmm(a, b) + 0.0, a[:, :, :1], b[:, :1], None, generator)

    class Later:
        """Kernels with a rate that is one bit off."""

        def __getattr__(self, name):
            def call(*arguments):
                return getattr(loaded, name)(*arguments)
            return call

        def hbfp_alike_sgd(self, parameters, count, models, ld, c, values, buffer):
            loaded.hbfp_alike_sgd(parameters, count, models, ld, c, values, buffer)
            last[0].view(torch.int32)[0, 0] ^= 1

    loaded, last, begun = compiled_updates.kernels.loaded(), [], compiled_updates._STEPS[torch.optim.SGD]
    if compiled_updates.kernels.library() is None:
        pytest.skip("no compiled kernels")
    monkeypatch.setattr(compiled_updates.kernels, "loaded", Later)

    def sgd(parameters, values, *rest):
        last[:] = [values]
        begun(parameters, values, *rest)

    monkeypatch.setitem(compiled_updates._STEPS, torch.optim.SGD, sgd)
    assert not compiled_updates._proof(torch.optim.SGD, generator)


def test_a_proof_is_asked_once_for_each_number_of_threads(monkeypatch):
    monkeypatch.setattr(proof, "_FOUND", {})
    asked, threads = [], torch.get_num_threads()

    def ask(generator):
        assert not torch.is_grad_enabled()
        asked.append(generator)
        return len(asked) == 1

    try:
        assert [proof.proven("key", ask) for _ in range(2)] == [True, True]
        torch.set_num_threads(threads + 1)
        assert [proof.proven("key", ask) for _ in range(2)] == [False, False]
    finally:
        torch.set_num_threads(threads)
    assert len(asked) == 2


def test_bits_are_compared():
    assert not proof.same_bits(torch.zeros(2), -torch.zeros(2))
    assert proof.same_bits(torch.full((2, 1), torch.nan), [torch.full((1,), torch.nan)] * 2)


def test_gradients_without_memory():
    """Zeros that autograd makes have no address: an update reads them as zeros, and neighbours' as they are."""
    kind = torch.optim.SGD
    if not compiled_updates.Compiled.serves(kind):
        pytest.skip("no kernels")
    plain = {"weight_decay": 0, "momentum": 0, "dampening": 0, "lr": 1, "nesterov": False}
    values, groups = torch.ones(2, 32), [plain, plain]
    update = compiled_updates.Compiled(kind, [slice(0, 16), slice(16, 32)])
    update(values, [torch._efficientzerotensor(2, 16), torch.view_as_complex(torch.ones(2, 16, 2)).conj().imag], {},
           groups, 1)
    assert (values[:, :16] == 1).all() and (values[:, 16:] == 2).all()
