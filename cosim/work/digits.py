"""The workload: scikit-learn's handwritten digits and a small network, trained here.

Training takes about a second, so weights are no file of the repository: they are trained where they are
needed and kept in the build cache, under the hash of this file and the versions of what trains.
"""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from hbfp import entries, files
from hbfp.golden.core.device import Layer
from hbfp.golden.sparsity import keep_mask

from ..simulate.verilator import Progress

#: Neurons of each layer, input first.
SIZES = (64, 256, 128, 10)
#: Images held out, of 1797.
HELD_OUT = 360
EPOCHS, BATCH, RATE, MOMENTUM = 30, 32, 0.05, 0.9
#: Epochs after pruning.
TUNED = 10


def load() -> tuple[np.ndarray, np.ndarray]:
    """Images (1797, 64), 0 to 1 in steps of 1/16, and their classes, in a fixed random order."""
    from sklearn.datasets import load_digits  # takes a second to import; not needed once trained

    images, classes = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(images))
    return (images[order] / 16).astype(np.float32), classes[order]


def train(images: np.ndarray, classes: np.ndarray, *, seed: int = 0, progress: Progress | None = None) -> list[Layer]:
    """Stochastic gradient descent with momentum, in float64.

    Parameters
    ----------
    images, classes : ndarray
        (count, 64) and (count,).
    seed : int
        Seed of the starting weights and the order of the images.
    progress : callable, optional
        Called with (done, total) epochs.

    Returns
    -------
    list of Layer
    """
    rng = np.random.default_rng(seed)
    weights = [rng.normal(0, np.sqrt(2 / k), (k, n)) for k, n in zip(SIZES, SIZES[1:], strict=False)]
    parts = [*weights, *(np.zeros(n) for n in SIZES[1:])]
    _descend(parts, images, classes, rng, EPOCHS, progress)
    return _layers(parts)


def fine_tune(layers: Sequence[Layer], images: np.ndarray, classes: np.ndarray, n: int, m: int, *,
              seed: int = 1) -> list[Layer]:
    """Prune the weights of trained layers to ``n`` of every ``m`` along K, and train what is left: list of Layer."""
    masks = [keep_mask(layer.weight, n, m) for layer in layers]
    weights = [layer.weight * mask for layer, mask in zip(layers, masks, strict=True)]
    parts = [part.astype(np.float64) for part in (*weights, *(layer.bias for layer in layers))]
    _descend(parts, images, classes, np.random.default_rng(seed), TUNED, masks=masks)
    return _layers(parts)


def _layers(parts):
    """Layers of weights and biases, in float32."""
    count = len(parts) // 2
    return [Layer(parts[i].astype(np.float32), parts[count + i].astype(np.float32), i < count - 1)
            for i in range(count)]


def _descend(parts, images, classes, rng, epochs, progress=None, masks=()):
    """Train ``parts`` in place; the first of them change only where there is a mask and it is true."""
    speed = [np.zeros_like(part) for part in parts]
    for epoch in range(epochs):
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            pick = order[start:start + BATCH]
            gradients = _gradients(parts, images[pick].astype(np.float64), classes[pick])
            for gradient, mask in zip(gradients, masks, strict=False):
                gradient *= mask
            for part, velocity, gradient in zip(parts, speed, gradients, strict=True):
                velocity *= MOMENTUM
                velocity -= RATE * gradient
                part += velocity
        if progress:
            progress(epoch + 1, epochs)


def _gradients(parts, x, classes):
    """Gradients of the mean cross entropy: weights first, then biases."""
    count = len(parts) // 2
    inputs = []
    for i in range(count):
        inputs.append(x)
        x = x @ parts[i] + parts[count + i]
        x = np.maximum(x, 0) if i < count - 1 else x
    error = np.exp(x - x.max(1, keepdims=True))
    error /= error.sum(1, keepdims=True)
    error[np.arange(len(classes)), classes] -= 1
    error /= len(classes)
    by_weight, by_bias = [None] * count, [None] * count
    for i in reversed(range(count)):
        by_weight[i], by_bias[i] = inputs[i].T @ error, error.sum(0)
        error = error @ parts[i].T * (inputs[i] > 0)
    return by_weight + by_bias


def prepare(progress: Progress | None = None) -> tuple[list[Layer], np.ndarray, np.ndarray]:
    """The trained network and the held-out images.

    Returns
    -------
    (list of Layer, ndarray of float32 (360, 64), ndarray of int (360,))
    """
    return _kept("digits", lambda images, classes: train(images, classes, progress=progress))


def prepare_pruned(n: int, m: int) -> tuple[list[Layer], np.ndarray, np.ndarray]:
    """As :func:`prepare`, with ``n`` of every ``m`` weights along K; pruned, and then trained on."""
    layers = prepare()[0]
    return _kept(f"digits-{n}of{m}", lambda images, classes: fine_tune(layers, images, classes, n, m))


def _kept(name, work):
    """What ``work`` makes of the images to train with, from the cache or into it; and those held out."""
    def make(folder):
        from threadpoolctl import threadpool_limits  # comes with scikit-learn

        images, classes = load()
        with threadpool_limits(1):    # small products: several threads take ten times as long
            layers = work(images[:-HELD_OUT], classes[:-HELD_OUT])
        np.savez(folder / "network.npz", images=images[-HELD_OUT:], classes=classes[-HELD_OUT:],
                 **{f"w{i}": layer.weight for i, layer in enumerate(layers)},
                 **{f"b{i}": layer.bias for i, layer in enumerate(layers)})

    key = files.key(Path(__file__).read_bytes(), version("numpy"), version("scikit-learn"))
    path = files.cache("cosim") / f"{name}-{key}"
    with np.load(entries.entry(path, make) / "network.npz") as data:
        count = len(SIZES) - 1
        layers = [Layer(data[f"w{i}"], data[f"b{i}"], i < count - 1) for i in range(count)]
        return layers, data["images"], data["classes"]


def accuracy(scores: np.ndarray, classes: np.ndarray) -> float:
    """Share of images whose highest score is that of their class."""
    return float(np.mean(np.argmax(scores, 1) == classes))
