"""The jobs of ``benchmarks/fused.py`` in HFTA (https://github.com/UofT-EcoSystem/hfta), if it can be imported.

HFTA fuses FP32 models into larger operations of torch: stacked products, grouped convolutions. Its low bits differ from
those of the models alone. It has Adam and Adadelta; the job with SGD takes torch's, on the stacked parameters.
"""

import torch
from torch import nn


class _Mlp(nn.Module):
    def __init__(self, count, linear):
        super().__init__()
        self.parts = nn.Sequential(linear(64, 128), nn.ReLU(), linear(128, 64), nn.ReLU(), linear(64, 10))
        self.count = count

    def forward(self, x):
        return self.parts(x.view(self.count, -1, 64))


class _Cnn(nn.Module):
    def __init__(self, count, ops):
        super().__init__()
        conv, norm, pool, mean, linear = ops
        self.parts = nn.Sequential(conv(1, 16, 3, padding=1), norm(16), nn.ReLU(), pool(2), conv(16, 32, 3, padding=1),
                                   norm(32), nn.ReLU(), mean(1))
        self.head, self.count = linear(32, 10), count

    def forward(self, x):
        x = x.view(self.count, -1, 1, 8, 8).transpose(0, 1).contiguous()
        return self.head(self.parts(x).flatten(2).transpose(0, 1).contiguous())


class _Transformer(nn.Module):
    """Its own encoder layer cannot be made: it imports a module that is not there."""

    def __init__(self, count, linear, norm, attention):
        super().__init__()
        self.embed, self.head, self.attention = linear(8, 32), linear(32, 10), attention
        self.inner = nn.Sequential(linear(32, 64), nn.ReLU(), linear(64, 32))
        self.norms, self.count = nn.ModuleList([norm(32), norm(32)]), count

    def forward(self, x):
        x = self.embed(x.view(self.count, -1, 8, 8))
        x = self.norms[0](x + self.attention(x, x, x, need_weights=False)[0])
        return self.head(self.norms[1](x + self.inner(x)).mean(2))


def step(name, count, x, targets, optimiser, options):
    """A callable that makes one training step of ``count`` models, or None without HFTA.

    Parameters
    ----------
    name : str
        ``mlp``, ``cnn`` or ``transformer``.
    count : int
        Number of models.
    x, targets : Tensor
        (count * N, ...) inputs, the models' batches behind each other, and classes.
    optimiser : type
        A class of ``torch.optim``.
    options : dict
        Its options.
    """
    try:
        from hfta import ops, optim
    except ImportError:
        return None
    linear, norm, *kinds = ops.convert_ops(count, nn.Linear, nn.LayerNorm, nn.Conv2d, nn.BatchNorm2d, nn.MaxPool2d,
                                           nn.AdaptiveAvgPool2d)
    match name:
        case "mlp":
            net = _Mlp(count, linear)
        case "cnn":
            net = _Cnn(count, (*kinds, linear))
        case "transformer":
            net = _Transformer(count, linear, norm, ops.MultiheadAttention(32, 4, B=count))
    if optimiser is torch.optim.SGD:
        own = optimiser(net.parameters(), **options)
    else:
        own = getattr(optim, optimiser.__name__)(net.parameters(), B=count, **options)

    def run():
        own.zero_grad()
        logits = net(x).flatten(0, 1)
        (nn.functional.cross_entropy(logits, targets) * count).backward()
        own.step()
    return run
