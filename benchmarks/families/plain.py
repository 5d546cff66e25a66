"""Networks that users write in plain torch.nn: recurrent and temporal, mixers, experts, graphs, flows, generators."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from hbfp.golden.lower.source import Source


class Of(nn.Module):
    """A function of parts and inputs as a model."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, *inputs: torch.Tensor) -> Any:
        """What the function gives."""
        return self.function(*self.parts, *inputs)


def _model(make: Callable[[], nn.Module], *shapes: Sequence[int]) -> Callable[[], Source]:
    """A model and random inputs of these shapes."""
    return lambda: (make(), tuple(torch.randn(shape) for shape in shapes))


def _cell(kind):
    """Steps of a cell over a sequence."""
    def forward(cell, head, x):
        state = None
        for step in x.unbind(1):
            state = cell(step, state)
        return head(state[0] if isinstance(state, tuple) else state)
    return lambda: Of(forward, kind(8, 16), nn.Linear(16, 5))


def _last(recurrent):
    return lambda: Of(lambda cells, head, x: head(cells(x)[0][:, -1]), recurrent(), nn.Linear(32, 5))


def _conv1d():
    return nn.Sequential(nn.Conv1d(4, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2),
                         nn.Conv1d(8, 16, 3, 2), nn.LeakyReLU(0.1), nn.AdaptiveAvgPool1d(1), nn.Flatten(),
                         nn.Linear(16, 5))


def _conv3d():
    return nn.Sequential(nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.MaxPool3d(2),
                         nn.Conv3d(8, 16, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 5))


class Temporal(nn.Module):
    """A block of a temporal convolutional network: dilated, causal, with weight norm."""

    def __init__(self, ins: int, outs: int, dilation: int) -> None:
        super().__init__()
        norm = nn.utils.parametrizations.weight_norm
        self.reach = 2 * dilation
        self.convs = nn.ModuleList(norm(nn.Conv1d(n, outs, 3, padding=self.reach, dilation=dilation))
                                   for n in (ins, outs))
        self.across = nn.Conv1d(ins, outs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, C, L) -> (N, C', L)."""
        y = x
        for conv in self.convs:
            y = F.dropout(F.relu(conv(y)[..., :-self.reach]), 0.2, self.training)
        return F.relu(y + self.across(x))


def _wavenet():
    def forward(first, gates, outs, last, x):
        x, skipped = first(x), 0
        for n, (gate, out) in enumerate(zip(gates, outs, strict=True)):
            a, b = gate(F.pad(x, (1 << n, 0))).chunk(2, 1)
            y = out(torch.tanh(a) * torch.sigmoid(b))
            x, skipped = x + y, skipped + y
        return last(F.relu(skipped))
    gates = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=1 << n) for n in range(3))
    return Of(forward, nn.Conv1d(1, 8, 1), gates, nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(3)),
              nn.Conv1d(8, 4, 1))


class Mixer(nn.Module):
    """A block of MLP-Mixer."""

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.tokens = nn.Sequential(nn.Linear(tokens, 32), nn.GELU(), nn.Linear(32, tokens))
        self.channels = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, tokens, width) -> the same."""
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


def _mixer():
    patches = nn.Conv2d(3, 16, 4, 4)
    return Of(lambda patches, blocks, norm, head, x: head(norm(blocks(patches(x).flatten(2).transpose(1, 2))).mean(1)),
              patches, nn.Sequential(*(Mixer(16, 16) for _ in range(2))), nn.LayerNorm(16), nn.Linear(16, 5))


class Splines(nn.Module):
    """A layer of a Kolmogorov-Arnold network: sums of learned functions, of B-splines of degree 3 on a grid."""

    def __init__(self, ins: int, outs: int, pieces: int = 4) -> None:
        super().__init__()
        self.base, self.spline = nn.Linear(ins, outs), nn.Linear(ins * (pieces + 3), outs, False)
        self.register_buffer("grid", torch.arange(-3, pieces + 4) * (2 / pieces) - 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, ins) -> (N, outs)."""
        own, grid = x.unsqueeze(-1), self.grid
        found = ((own >= grid[:-1]) & (own < grid[1:])).to(x.dtype)
        for k in range(1, 4):
            found = ((own - grid[:-k - 1]) / (grid[k:-1] - grid[:-k - 1]) * found[..., :-1]
                     + (grid[k + 1:] - own) / (grid[k + 1:] - grid[1:-k]) * found[..., 1:])
        return self.base(F.silu(x)) + self.spline(found.flatten(1))


class Experts(nn.Module):
    """A mixture of experts, all of which compute: the two that a word is sent to have shares, the others none."""

    def __init__(self, width: int = 16, experts: int = 4) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))
                                     for _ in range(experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, width) -> the same."""
        scores = self.gate(x)
        least = scores.topk(2, -1).values[..., -1:]
        shares = scores.masked_fill(scores < least, float("-inf")).softmax(-1)
        return sum(shares[..., n:n + 1] * expert(x) for n, expert in enumerate(self.experts))


def _bags():
    def forward(words, kinds, deep, wide, numbers, text, offsets, kind):
        features = torch.cat([words(text, offsets), kinds(kind), numbers], 1)
        return torch.sigmoid(deep(features) + wide(features))
    deep = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 1))
    model = Of(forward, nn.EmbeddingBag(30, 8, mode="mean"), nn.Embedding(5, 8), deep, nn.Linear(20, 1))
    return model, (torch.randn(3, 4), torch.randint(30, (10,)), torch.tensor([0, 4, 7]), torch.randint(5, (3,)))


class Sine(nn.Module):
    """A layer of a SIREN."""

    def __init__(self, ins: int, outs: int, factor: float = 30.0) -> None:
        super().__init__()
        self.linear, self.factor = nn.Linear(ins, outs), factor
        nn.init.uniform_(self.linear.weight, -1 / ins, 1 / ins)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, ins) -> (N, outs)."""
        return torch.sin(self.factor * self.linear(x))


def _nerf():
    def forward(density, colour, places, directions):
        def waves(x):
            powers = 2.0 ** torch.arange(4)
            angles = (x.unsqueeze(-1) * powers).flatten(1)
            return torch.cat([x, torch.sin(angles), torch.cos(angles)], -1)
        h = density(waves(places))
        return torch.sigmoid(colour(torch.cat([h[:, 1:], waves(directions)], -1))), F.softplus(h[:, 0])
    return Of(forward, nn.Sequential(nn.Linear(27, 32), nn.ReLU(), nn.Linear(32, 17)),
              nn.Sequential(nn.Linear(43, 16), nn.ReLU(), nn.Linear(16, 3)))


def _generator():
    def up(ins, outs):
        return nn.ConvTranspose2d(ins, outs, 4, 2, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU(True)
    return nn.Sequential(nn.ConvTranspose2d(20, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
                         *up(32, 16), *up(16, 8), nn.ConvTranspose2d(8, 3, 4, 2, 1, bias=False), nn.Tanh())


def _discriminator():
    def down(ins, outs):
        return nn.Conv2d(ins, outs, 4, 2, 1, bias=False), nn.BatchNorm2d(outs), nn.LeakyReLU(0.2, True)
    return nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True), *down(8, 16), *down(16, 32),
                         nn.Conv2d(32, 1, 4, 1, 0, bias=False), nn.Sigmoid(), nn.Flatten(0))


def _pointnet():
    def forward(turn, first, second, last, x):
        move = turn[1](turn[0](x).max(2)[0]).view(-1, 3, 3) + torch.eye(3)
        h = first((x.transpose(1, 2) @ move).transpose(1, 2))
        found = torch.max(second(h), 2, keepdim=True)[0]
        return F.log_softmax(last(torch.cat([h, found.expand(-1, -1, h.shape[2])], 1)), 1)
    def layer(ins, outs):
        return nn.Conv1d(ins, outs, 1), nn.BatchNorm1d(outs), nn.ReLU()
    turn = nn.ModuleList([nn.Sequential(*layer(3, 16)), nn.Linear(16, 9)])
    return Of(forward, turn, nn.Sequential(*layer(3, 16)), nn.Sequential(*layer(16, 32)), nn.Conv1d(48, 4, 1))


def _adjacent(count):
    near = (torch.rand(count, count) < 0.4).float()
    near = ((near + near.t() + torch.eye(count)) > 0).float()
    return near


def _gcn():
    def forward(first, second, x, near):
        root = near.sum(1).rsqrt()
        near = root[:, None] * near * root[None]
        return F.log_softmax(near @ second(F.relu(near @ first(x))), -1)
    return Of(forward, nn.Linear(8, 16), nn.Linear(16, 4)), (torch.randn(9, 8), _adjacent(9))


def _gat():
    def forward(project, left, right, out, x, near):
        h = project(x)
        scores = F.leaky_relu(left(h) + right(h).t(), 0.2)
        shares = scores.masked_fill(near == 0, float("-inf")).softmax(-1)
        return out(F.elu(shares @ h))
    return Of(forward, nn.Linear(8, 16, False), nn.Linear(16, 1, False), nn.Linear(16, 1, False),
              nn.Linear(16, 4)), (torch.randn(9, 8), _adjacent(9))


class Capsules(nn.Module):
    """Capsules with dynamic routing."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, 2)
        self.weight = nn.Parameter(torch.randn(36, 4, 4, 6) * 0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 1, 8, 8) -> lengths (N, 4)."""
        def squash(s):
            squares = (s * s).sum(-1, keepdim=True)
            return squares / (1 + squares) * s / torch.sqrt(squares + 1e-8)
        u = squash(self.conv(x).flatten(1).unflatten(1, (-1, 4)))
        votes = torch.einsum("nid,iode->nioe", u, self.weight)
        logits = torch.zeros_like(votes[..., :1])
        for turn in range(3):
            v = squash((logits.softmax(2) * votes).sum(1, keepdim=True))
            if turn < 2:
                logits = logits + (votes * v).sum(-1, keepdim=True)
        return v.squeeze(1).norm(dim=-1)


class Coupling(nn.Module):
    """A layer of a flow (RealNVP)."""

    def __init__(self, width: int, turned: bool) -> None:
        super().__init__()
        self.net, self.turned = nn.Sequential(nn.Linear(width, 16), nn.Tanh(), nn.Linear(16, 2 * width)), turned

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(N, 2 width) -> the same, and the logarithm of the determinant."""
        kept, other = x.chunk(2, 1)[::-1 if self.turned else 1]
        scale, shift = self.net(kept).chunk(2, 1)
        scale = torch.tanh(scale)
        other = other * torch.exp(scale) + shift
        return torch.cat([other, kept] if self.turned else [kept, other], 1), scale.sum(1)


def _flow():
    def forward(layers, x):
        total = 0
        for layer in layers:
            x, part = layer(x)
            total = total + part
        return -0.5 * (x ** 2).sum(1) + total
    return Of(forward, nn.ModuleList(Coupling(3, bool(n % 2)) for n in range(4)))


def _vae():
    def forward(encode, decode, x, noise):
        mean, spread = encode(x).chunk(2, 1)
        z = mean + noise * torch.exp(0.5 * spread)
        far = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), 1)
        return torch.sigmoid(decode(z)), far
    return Of(forward, nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 8)),
              nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20)))


class Quantised(nn.Module):
    """A VQ-VAE: each pixel of an encoder's result becomes the nearest of a table's rows."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.table = nn.Conv2d(3, 8, 4, 4), nn.Embedding(12, 8)
        self.decode = nn.ConvTranspose2d(8, 3, 4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 3, H, W) -> the same."""
        z = self.encode(x).permute(0, 2, 3, 1)
        rows = z.reshape(-1, 8)
        far = rows.pow(2).sum(1, keepdim=True) - 2 * rows @ self.table.weight.t() + self.table.weight.pow(2).sum(1)
        nearest = F.one_hot(far.argmin(1), 12).float()
        return self.decode((nearest @ self.table.weight).view(z.shape).permute(0, 3, 1, 2))


def _espcn():
    return nn.Sequential(nn.Conv2d(1, 16, 5, padding=2), nn.Tanh(), nn.Conv2d(16, 8, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(8, 9, 3, padding=1), nn.PixelShuffle(3))


class Translate(nn.Module):
    """A GRU that reads, and one that writes with additive attention, word by word."""

    def __init__(self, words: int = 30, width: int = 16) -> None:
        super().__init__()
        self.source, self.target = nn.Embedding(words, 8), nn.Embedding(words, 8)
        self.read, self.write = nn.GRU(8, width, batch_first=True), nn.GRUCell(8 + width, width)
        self.keys, self.query, self.score = nn.Linear(width, 8), nn.Linear(width, 8), nn.Linear(8, 1)
        self.out = nn.Linear(width, words)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Words (N, L) and (N, T) to logits (N, T, words)."""
        seen, state = self.read(self.source(source))
        state, keys, found = state[0], self.keys(seen), []
        for word in self.target(target).unbind(1):
            scores = self.score(torch.tanh(keys + self.query(state).unsqueeze(1))).squeeze(-1)
            mixed = torch.bmm(scores.softmax(-1).unsqueeze(1), seen).squeeze(1)
            state = self.write(torch.cat([word, mixed], 1), state)
            found.append(self.out(state))
        return torch.stack(found, 1)


def _highway():
    def forward(plain, gates, head, x):
        for one, gate in zip(plain, gates, strict=True):
            t = torch.sigmoid(gate(x))
            x = t * F.relu(one(x)) + (1 - t) * x
        return head(x)
    return Of(forward, *(nn.ModuleList(nn.Linear(16, 16) for _ in range(3)) for _ in range(2)), nn.Linear(16, 4))


class Cbam(nn.Module):
    """Attention over channels and over pixels, as in CBAM."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.conv, self.mlp = nn.Conv2d(3, width, 3, padding=1), nn.Sequential(
            nn.Linear(width, 4), nn.ReLU(), nn.Linear(4, width))
        self.places, self.head = nn.Conv2d(2, 1, 7, padding=3), nn.Linear(width, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 3, H, W) -> (N, 4)."""
        x = F.relu(self.conv(x))
        shares = torch.sigmoid(self.mlp(x.mean((2, 3))) + self.mlp(F.adaptive_max_pool2d(x, 1).flatten(1)))
        x = x * shares[:, :, None, None]
        x = x * torch.sigmoid(self.places(torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True)[0]], 1)))
        return self.head(x.mean((2, 3)))


def _linear_attention():
    def forward(project, out, x):
        q, k, v = project(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        sums = torch.cumsum(k.unsqueeze(-1) * v.unsqueeze(-2), 1)
        found = torch.einsum("nld,nlde->nle", q, sums) / (q * k.cumsum(1)).sum(-1, keepdim=True)
        return out(found)
    return Of(forward, nn.Linear(8, 24), nn.Linear(8, 8))


def _unet3d():
    def double(ins, outs):
        return nn.Sequential(nn.Conv3d(ins, outs, 3, padding=1), nn.GroupNorm(2, outs), nn.ReLU())
    def forward(first, down, up, second, last, x):
        kept = first(x)
        return last(second(torch.cat([kept, up(down(F.max_pool3d(kept, 2)))], 1)))
    return Of(forward, double(1, 4), double(4, 8), nn.ConvTranspose3d(8, 4, 2, 2), double(8, 4), nn.Conv3d(4, 2, 1))


def _fnet():
    def forward(norm, up, down, x):
        x = norm(x + torch.fft.fft2(x).real)
        return x + down(F.gelu(up(x)))
    return Of(forward, nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16))


def _transformer():
    return nn.Transformer(16, 2, 1, 1, 32, batch_first=True)


NETWORKS: dict[str, Callable[[], Source]] = {
    "mlp": _model(lambda: nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Dropout(), nn.Linear(33, 5)), (4, 20)),
    "lstm_cell": _model(_cell(nn.LSTMCell), (2, 3, 8)), "gru_cell": _model(_cell(nn.GRUCell), (2, 3, 8)),
    "lstm_bidirectional": _model(_last(lambda: nn.LSTM(8, 16, 2, batch_first=True, bidirectional=True)), (2, 4, 8)),
    "gru_bidirectional": _model(_last(lambda: nn.GRU(8, 16, batch_first=True, bidirectional=True)), (2, 4, 8)),
    "rnn": _model(_last(lambda: nn.RNN(8, 32, 2, nonlinearity="relu", batch_first=True)), (2, 4, 8)),
    "conv1d": _model(_conv1d, (2, 4, 20)), "conv3d": _model(_conv3d, (1, 1, 6, 8, 8)),
    "tcn": _model(lambda: nn.Sequential(Temporal(2, 8, 1), Temporal(8, 8, 2)), (1, 2, 16)),
    "wavenet": _model(_wavenet, (1, 1, 16)), "mlp_mixer": _model(_mixer, (1, 3, 16, 16)),
    "kan": _model(lambda: nn.Sequential(Splines(4, 6), Splines(6, 2)), (5, 4)), "embedding_bag": _bags,
    "experts": _model(Experts, (6, 16)), "transformer": _model(_transformer, (1, 6, 16), (1, 5, 16)),
    "siren": _model(lambda: nn.Sequential(Sine(2, 16), Sine(16, 16), nn.Linear(16, 3)), (9, 2)),
    "nerf": _model(_nerf, (6, 3), (6, 3)), "dcgan_generator": _model(_generator, (1, 20, 1, 1)),
    "dcgan_discriminator": _model(_discriminator, (1, 3, 32, 32)), "pointnet": _model(_pointnet, (1, 3, 12)),
    "gcn": _gcn, "gat": _gat, "capsules": _model(Capsules, (1, 1, 8, 8)), "real_nvp": _model(_flow, (5, 6)),
    "vae": _model(_vae, (3, 20), (3, 4)), "vq_vae": _model(Quantised, (1, 3, 16, 16)),
    "espcn": _model(_espcn, (1, 1, 8, 8)),
    "translate": lambda: (Translate(), (torch.randint(30, (2, 5)), torch.randint(30, (2, 3)))),
    "highway": _model(_highway, (4, 16)), "cbam": _model(Cbam, (1, 3, 9, 9)),
    "linear_attention": _model(_linear_attention, (1, 6, 8)), "unet3d": _model(_unet3d, (1, 1, 4, 8, 8)),
    "fnet": _model(_fnet, (1, 8, 16))}
