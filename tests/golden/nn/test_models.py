"""Whole models: nothing is left in FP32 after converting, whatever functions their attention is written with.

The small models here have the operations of those that people use; with ``transformers`` installed, its own are built
from their configurations, too.
"""

import math

import pytest

torch = pytest.importorskip("torch")

import golden.nn as gn  # noqa: E402

F, nn = torch.nn.functional, torch.nn


class Conv1D(nn.Module):
    """GPT-2's linear layer: addmm with a turned weight."""

    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(0.2 * torch.randn(inputs, outputs)), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], -1)


def plain(q, k, v):
    scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(q.shape[-1])
    return torch.matmul(F.softmax(scores, -1), v)


def stacked(q, k, v):
    n, heads = q.shape[:2]
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    return torch.bmm(torch.bmm(q, k.transpose(1, 2)).softmax(-1), v).unflatten(0, (n, heads))


def biased(q, k, v):
    n, heads = q.shape[:2]
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))
    zeros = torch.empty(len(q), q.shape[1], k.shape[1])
    scores = torch.baddbmm(zeros, q, k.mT, beta=0, alpha=0.3)
    return torch.bmm(scores.softmax(-1), v).unflatten(0, (n, heads))


def summed(q, k, v):
    return torch.einsum("bhij,bhjd->bhid", torch.einsum("b h i d, b h j d -> b h i j", q, k).softmax(-1), v)


def rotary(q, k, v):
    """Llama's: angles by a product with K = 1, fewer keys than queries."""
    frequencies, positions = torch.tensor([[[1.0], [0.1]]]), torch.arange(q.shape[2]).float()[None, None]
    angles = (frequencies @ positions).transpose(1, 2).repeat(1, 1, q.shape[-1] // 2)[:, None]

    def turn(t):
        half = t.shape[-1] // 2
        return t * angles.cos() + torch.cat((-t[..., half:], t[..., :half]), -1) * angles.sin()
    return F.scaled_dot_product_attention(turn(q), turn(k[:, :2]), v[:, :2], is_causal=True, enable_gqa=True)


class Block(nn.Module):
    """Attention and a perceptron."""

    def __init__(self, attend, linear):
        super().__init__()
        self.attend, self.qkv, self.out = attend, linear(48, 16), linear(16, 16)
        self.up, self.down, self.norm = linear(32, 16), linear(16, 32), nn.LayerNorm(16)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (4, 4)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Language(nn.Module):
    """Tokens to tokens, embedding tied."""

    def __init__(self, attend, linear=lambda o, i: nn.Linear(i, o)):
        super().__init__()
        self.embedding, self.blocks = nn.Embedding(11, 16), nn.ModuleList(Block(attend, linear) for _ in range(2))

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return F.linear(x, self.embedding.weight)


class Vision(nn.Module):
    """Patches by a convolution, then attention."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.block = Block(F.scaled_dot_product_attention, lambda outputs, inputs: nn.Linear(inputs, outputs))

    def forward(self, x):
        return self.block(self.patches(x).flatten(2).transpose(1, 2)).mean(1)


class Diffusion(nn.Module):
    """A block of a U-Net: time embedding, residual convolutions, cross attention, down and up."""

    def __init__(self):
        super().__init__()
        self.time, self.shortcut = nn.Linear(8, 16), nn.Conv2d(4, 16, 1)
        self.first, self.second = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 16, 3, padding=1)
        self.norm, self.down = nn.GroupNorm(4, 16), nn.Conv2d(16, 16, 3, 2, 1)
        self.q, self.kv = nn.Conv1d(16, 16, 1), nn.Linear(6, 32, bias=False)
        self.out, self.up = nn.Conv2d(16, 16, 1), nn.ConvTranspose2d(16, 4, 4, 2, 1)

    def forward(self, x, time, text):
        y = self.first(x) + self.time(time)[:, :, None, None]
        y = self.down(self.shortcut(x) + self.second(F.silu(self.norm(y))))
        n, c, h, w = y.shape
        k, v = self.kv(text).chunk(2, -1)
        weights = torch.einsum("bct,bsc->bts", self.q(y.flatten(2)), k).mul(0.25).softmax(-1)
        y = y + self.out(torch.bmm(weights, v).transpose(1, 2).reshape(n, c, h, w))
        return self.up(y)


def tokens():
    return (torch.randint(0, 11, (2, 7)),)


#: Name -> model, inputs, and how many products it has: layers of two blocks, two of attention each, and the head.
MODELS = {
    "gpt2": (lambda: Language(F.scaled_dot_product_attention, Conv1D), tokens, 13),
    "bert": (lambda: Language(plain), tokens, 13), "llama": (lambda: Language(rotary), tokens, 13),
    "opt": (lambda: Language(stacked), tokens, 13), "bloom": (lambda: Language(biased), tokens, 13),
    "t5": (lambda: Language(summed), tokens, 13), "vit": (Vision, lambda: (torch.randn(2, 3, 8, 8),), 7),
    "unet": (Diffusion, lambda: (torch.randn(2, 4, 8, 8), torch.randn(2, 8), torch.randn(2, 5, 6)), 11)}


def converted(net, x, named=None):
    """The model after a strict conversion, its report, and how far its output is from FP32's."""
    named = named or {}
    net.eval()
    with torch.no_grad():
        want = net(*x, **named)
        gn.convert(net, "hbfp8", strict=True, example=named or x)
        got = net(*x, **named)
    want, got = (t if isinstance(t, torch.Tensor) else t[0] for t in (want, got))
    return gn.report(net, *x, named=named), float((got - want).norm() / want.norm())


@pytest.mark.parametrize("name", MODELS)
def test_small_models(name):
    make, data, products = MODELS[name]
    torch.manual_seed(0)
    net, x = make(), data()
    assert len(gn.fp32_products(net, *x)) > 1
    report, error = converted(net, x)
    assert report.left == [] and sum(entry.calls for entry in report.entries) == products and 0 < error < 0.05
    assert gn.fp32_products(net, *x) == []
    net.train()(*x).square().mean().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in net.parameters())
    assert set(gn.report(gn.convert(net, "hbfp4"), *x).shares) == {"hbfp4 (1, 32)"}


SMALL = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 64, "max_position_embeddings": 64}
#: Class of a model of transformers -> its configuration.
PUBLISHED = {
    "GPT2LMHeadModel": {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "BertForMaskedLM": SMALL, "LlamaForCausalLM": SMALL | {"num_key_value_heads": 2},
    "OPTForCausalLM": {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                       "ffn_dim": 64, "max_position_embeddings": 64, "word_embed_proj_dim": 32},
    "ViTForImageClassification": {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                                  "intermediate_size": 64, "image_size": 16, "patch_size": 4},
    "T5ForConditionalGeneration": {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2,
                                   "num_heads": 4, "decoder_start_token_id": 0},
    "MistralForCausalLM": SMALL | {"num_key_value_heads": 2},
    "DistilBertForMaskedLM": {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64,
                              "max_position_embeddings": 64}}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models(transformers, name, attention):
    kind = getattr(transformers, name)
    torch.manual_seed(0)
    net = kind(kind.config_class(**PUBLISHED[name], attn_implementation=attention))
    tokens = torch.randint(0, 90, (2, 9))
    named = {"pixel_values": torch.randn(2, 3, 16, 16)} if "ViT" in name else \
        {"input_ids": tokens, "decoder_input_ids": tokens} if "T5" in name else {"input_ids": tokens}
    assert len(gn.fp32_products(net, named=named)) > 1
    report, error = converted(net, (), named)
    assert report.left == [] and 0 < error < 0.1
    net.train()(**named)[0].square().mean().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in net.parameters())
