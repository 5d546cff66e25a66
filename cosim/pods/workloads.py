"""What is run on machines of pods: networks whose products the machine computes, and all else the host.

A workload is a function of a :class:`~cosim.pods.bench.Bench` and a random generator.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hbfp.format import HBFPFormat
from hbfp.golden.pods.layers import Layer, fused

from ..work import digits as network

if TYPE_CHECKING:
    from .bench import Bench

#: Images or rows of a batch.
BATCH = 32


def _normal(rng, *shape):
    return rng.normal(0, np.sqrt(2 / shape[0]), shape).astype(np.float32)


def digits(bench: "Bench", rng: np.random.Generator) -> None:
    """The trained digits network, 64-256-128-10: one program; results stay on the machine from layer to layer."""
    layers, images, _ = network.prepare()
    bench.run("digits", [Layer(f"linear {n}", n - 1 if n else images[:BATCH], layer.weight, None, layer.bias,
                               layer.relu) for n, layer in enumerate(layers)])


def patches(images: np.ndarray, side: int) -> np.ndarray:
    """Windows of ``side`` x ``side`` of padded images (count, height, width, channels): a row of X for each pixel."""
    edge = side // 2
    padded = np.pad(images, [(0, 0), (edge, edge), (edge, edge), (0, 0)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), (1, 2))
    return np.ascontiguousarray(windows.transpose(0, 1, 2, 4, 5, 3)).reshape(-1, side * side * images.shape[3])


def convolution(bench: "Bench", rng: np.random.Generator) -> None:
    """A convolution of 3 x 3, 8 to 16 channels, on two images of 8 x 8: the host makes X of windows."""
    images = np.maximum(_normal(rng, 2, 8, 8, 8), 0)
    bench.run("3 x 3 convolution", [Layer("conv", patches(images, 3), _normal(rng, 72, 16), _normal(rng, 16),
                                    _normal(rng, 16), True)])


def _softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def _norm(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))


def transformer(bench: "Bench", rng: np.random.Generator, tokens: int = 16, width: int = 32, heads: int = 2) -> None:
    """An encoder layer as BERT has it; softmax, norms and what follows attention are the host's."""
    x, each = rng.normal(size=(tokens, width)).astype(np.float32), width // heads
    parts = bench.run("transformer: Q, K, V", [Layer(name, x, _normal(rng, width, width), None, _normal(rng, width))
                                         for name in "QKV"])
    q, k, v = (parts[n].reshape(tokens, heads, each).transpose(1, 0, 2) for n in range(3))
    scores = bench.run("transformer: scores", [Layer(f"head {h}", q[h], np.ascontiguousarray(k[h].T))
                                               for h in range(heads)])
    shares = [_softmax(scores[h] / np.float32(np.sqrt(each))) for h in range(heads)]
    context = bench.run("transformer: context", [Layer(f"head {h}", shares[h], v[h]) for h in range(heads)])
    joined = np.concatenate([context[h] for h in range(heads)], 1)
    x = _norm(x + bench.run("transformer: output", [Layer("output", joined, _normal(rng, width, width))])[0])
    bench.run("transformer: feed-forward", [
        Layer("up", x, _normal(rng, width, 4 * width), None, _normal(rng, 4 * width), True),
        Layer("down", 0, _normal(rng, 4 * width, width), None, _normal(rng, width))])


# --- Several models ------------------------------------------------------------------------------


#: What the names of jobs of several models end with.
JOB = "as one job"
#: Sizes of the MLP that sweeps train.
SIZES = (64, 128, 64, 10)


def models(rng: np.random.Generator, count: int, sizes: Sequence[int] = SIZES, batch: int = BATCH) -> list[list[Layer]]:
    """MLPs with weights of their own, each on a batch of its own."""
    return [[Layer(f"linear {n}", n - 1 if n else np.maximum(rng.normal(size=(batch, sizes[0])), 0).astype(np.float32),
                   _normal(rng, *sizes[n:n + 2]), None, _normal(rng, sizes[n + 1]), n < len(sizes) - 2)
             for n in range(len(sizes) - 1)] for _ in range(count)]


def together(bench: "Bench", name: str, jobs: Sequence[Sequence[Layer]]) -> list[dict[int, np.ndarray]]:
    """Run lists of layers one after the other, then as one job, and compare the results.

    Returns
    -------
    list of dict
        For each list its results in the job: number of a layer -> float32 array (M, N).
    """
    count = len(jobs)
    alone = [bench.run(f"{name}, model {b}", layers) for b, layers in enumerate(jobs)]
    job = bench.run(f"{name}, {count} {JOB}", fused(jobs))
    parts = [{number // count: values for number, values in job.items() if number % count == b} for b in range(count)]
    for one, other in zip(alone, parts, strict=True):
        for n, values in one.items():
            bench.same(f"{name}, layer {n}", other[n], values)
    return parts


def forward(bench: "Bench", rng: np.random.Generator, count: int = 4) -> None:
    """The forward pass of several MLPs."""
    together(bench, f"MLP, {count} models", models(rng, count))


def few(bench: "Bench", rng: np.random.Generator, count: int = 4) -> None:
    """Several MLPs on eight images each, which leave pods idle: a tile waits for its sum, and there are no others."""
    together(bench, f"MLP on 8 images, {count} models", models(rng, count, batch=8))


def step(bench: "Bench", rng: np.random.Generator, count: int = 4) -> None:
    """Several MLPs, one training step: forward, then the gradients of X and W of each layer, all in HBFP."""
    jobs = models(rng, count)
    inputs, depth = [[np.asarray(job[0].x)] for job in jobs], len(jobs[0])
    for n in range(depth):
        results = together(bench, f"step, layer {n}", [[_host(job[n], inputs[b][n])] for b, job in enumerate(jobs)])
        for b, result in enumerate(results):
            inputs[b].append(result[0])
    gradients = []
    for values in inputs:
        error = _softmax(values[-1])
        error[np.arange(BATCH), rng.integers(error.shape[1], size=BATCH)] -= 1
        gradients.append(error / np.float32(BATCH))
    for n in reversed(range(depth)):
        backward = [[Layer(f"gradient of W {n}", np.ascontiguousarray(inputs[b][n].T), gradients[b]),
                     *([Layer(f"gradient of X {n}", gradients[b], np.ascontiguousarray(job[n].w.T))] if n else [])]
                    for b, job in enumerate(jobs)]
        results = together(bench, f"step, gradients of layer {n}", backward)
        if n:
            gradients = [result[1] * (inputs[b][n] > 0) for b, result in enumerate(results)]


def _host(layer, x):
    """A layer whose X comes from the host."""
    return Layer(layer.name, x, layer.w, layer.scale, layer.bias, layer.relu, layer.fmt)


def full(bench: "Bench", rng: np.random.Generator, count: int = 2) -> None:
    """Models that fill the pods alone: nothing is gained."""
    together(bench, f"wide, {count} models", models(rng, count, (128, 128), 128))


def mixed(bench: "Bench", rng: np.random.Generator, formats: Sequence[HBFPFormat]) -> None:
    """MLPs of several formats: the array converts to its own format alone, so X passes through the host."""
    jobs = models(rng, len(formats))
    values = [job[0].x for job in jobs]
    for n in range(len(jobs[0])):
        layers = [[Layer(job[n].name, values[b], job[n].w, None, job[n].bias, job[n].relu, formats[b])]
                  for b, job in enumerate(jobs)]
        widths = ", ".join(str(fmt.mantissa) for fmt in formats)
        values = [result[0] for result in together(bench, f"layer {n} of {widths} bits", layers)]
