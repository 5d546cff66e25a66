"""Training steps of whole models on a GPU, in FP32, under BF16 autocast and in HBFP, for :mod:`benchmarks.gpu`."""

import copy
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

import golden.nn as gn
from hbfp.format import HBFPFormat

#: Steps that are timed, behind two that are not.
STEPS = 8


class Block(nn.Module):
    """A layer of a GPT: attention and a multilayer perceptron, norms before each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``x`` (batch, tokens, width)."""
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class GPT(nn.Module):
    """Twelve layers of 768, as GPT-2's smallest; returns the loss of predicting each next token."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, tokens: int = 1024, words: int = 50304):
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, width), nn.Parameter(torch.zeros(tokens, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Tokens ``x`` and those that follow, ``y`` (batch, tokens)."""
        h = self.tokens(x) + self.places
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.head(self.norm(h)).flatten(0, 1), y.flatten())


class Classified(nn.Module):
    """A network of images with its loss."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Images ``x`` and their classes ``y``."""
        return F.cross_entropy(self.network(x), y)


def gpt() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """The GPT, and 8 sequences of 1024 tokens."""
    text = torch.randint(50304, (8, 1025), device="cuda")
    return GPT(), (text[:, :-1].contiguous(), text[:, 1:].contiguous())


def resnet50() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """ResNet-50, and 64 images of 224 x 224."""
    from torchvision.models import resnet50 as network
    images = torch.randn(64, 3, 224, 224, device="cuda").contiguous(memory_format=torch.channels_last)
    return Classified(network()), (images, torch.randint(1000, (64,), device="cuda"))


MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]] = {"gpt": gpt, "resnet50": resnet50}


def hbfp(*block: int, gradients: str = "rne") -> gn.Formats:
    """HBFP8 with such blocks."""
    fmt = HBFPFormat(mantissa=8, block=block)
    return gn.Formats.of(fmt, g=HBFPFormat(mantissa=8, block=block, rounding=gradients))


#: What a model is trained in: formats, or None and whether BF16 autocast is on.
KINDS: dict[str, tuple[gn.Formats | None, bool]] = {
    "fp32": (None, False), "bf16": (None, True), "hbfp8 (1, 32)": (hbfp(1, 32), False),
    "hbfp8 (1, 128)": (hbfp(1, 128), False), "hbfp8 (32, 32)": (hbfp(32, 32), False),
    "hbfp8 (1, 32), stochastic g": (hbfp(1, 32, gradients="stochastic"), False)}


def steps(name: str) -> list[dict[str, Any]]:
    """Milliseconds of a step in each kind, as it runs and as a CUDA graph, the loss of the first, and GiB in use."""
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False            # FP32 is FP32; that of products is off by default
    model, batch = MODELS[name]()
    rows: list[dict[str, Any]] = []
    for kind, (formats, narrow) in KINDS.items():
        row: dict[str, Any] = {"model": name, "kind": kind}
        try:
            row |= _measured(copy.deepcopy(model), batch, formats, narrow)
        except (NotImplementedError, ValueError, RuntimeError) as error:
            row["error"] = str(error).splitlines()[0][:120]
        rows.append(row)
        print(row, flush=True)                         # each takes a while, the first time above all
        torch.cuda.empty_cache()
    base = {key: rows[0].get(key) for key in ("ms", "graph_ms")}
    for row in rows:
        row |= {f"{key} / fp32": row[key] / base[key] for key in base if row.get(key) and base[key]}
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return [{key: row.get(key, "") for key in columns} for row in rows]


def once(name: str, kind: str) -> None:
    """One step of a model in a kind, which compiles its kernels."""
    model, batch = MODELS[name]()
    _step(model, batch, *KINDS[kind])()
    torch.cuda.synchronize()


def _step(model, batch, formats, narrow):
    """A model's step as a function, which returns the loss."""
    model = model.cuda()
    if batch[0].dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    if formats is not None:
        model = gn.convert(model, formats)
    optimiser = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, fused=True)

    def step():
        optimiser.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16) if narrow else nullcontext():
            loss = model(*batch)
        loss.backward()
        optimiser.step()
        return loss
    return step


def _measured(model, batch, formats, narrow):
    step = _step(model, batch, formats, narrow)
    torch.cuda.reset_peak_memory_stats()
    first = step().item()
    step()
    found = {"loss": first, "ms": _average(step, STEPS)}
    found["gib"] = torch.cuda.max_memory_allocated() / 2 ** 30
    if (graph := _captured(step)) is not None:
        found["graph_ms"] = _average(graph.replay, STEPS)
    return found


def _average(call, times):
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / times * 1e3


def _captured(step):
    """The step as a CUDA graph; None where something in it cannot be captured."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    try:
        with torch.cuda.stream(stream):
            step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        return graph
    except RuntimeError as error:
        print("no graph:", str(error).splitlines()[0][:100])
        torch.cuda.synchronize()
        return None
