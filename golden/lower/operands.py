"""The operands of a model's matrix products, as a forward pass in float32 multiplies them."""

from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .zoo import source

#: Rows of X that are kept of one product, from its middle.
ROWS = 128
#: Matrices of a batch that are kept.
BATCH = 4
_aten = torch.ops.aten


class _Recorder(TorchDispatchMode):
    """Keeps (M, X, W) of every product: M rows in all, of X (at most ROWS, K) those that are kept, W (K, N)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, np.ndarray, np.ndarray]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (_aten.mm.default, _aten.addmm.default):
            x, w = args[-2:]
            self._keep(x.shape[0], x, w)
        elif func in (_aten.bmm.default, _aten.baddbmm.default):
            for x, w in list(zip(*args[-2:], strict=True))[:BATCH]:
                self._keep(x.shape[0] * len(args[-1]) // min(BATCH, len(args[-1])), x, w)
        elif func == _aten.convolution.default and not args[6] and args[8] == 1 and args[1].ndim == 4:
            self._convolution(*args[:2], *args[3:6])
        return func(*args, **(kwargs or {}))

    def _keep(self, count, x, w):
        first = max((x.shape[0] - ROWS) // 2, 0)
        kept = [part.detach().float().contiguous().numpy().copy() for part in (x[first:first + ROWS], w)]
        self.found.append((count, *kept))

    def _convolution(self, x, w, stride, padding, dilation):
        """Pixels by terms, a tap after the other, as the lowering multiplies them."""
        columns, channels, *kernel = w.shape
        pixels = torch.nn.functional.unfold(x[:1], kernel, dilation, padding, stride)[0]
        rows = pixels.reshape(channels, -1, pixels.shape[-1]).permute(2, 1, 0).reshape(pixels.shape[-1], -1)
        self._keep(len(rows) * len(x), rows, w.reshape(columns, channels, -1).permute(2, 1, 0).reshape(-1, columns))


def recorded(text: str) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """The products of a model by name or of a file, in order: M, rows of X that were kept, and W.

    Linear layers, products of two activations, and convolutions without groups, whose X is (pixels, taps and
    channels). The rows are those of M that lie in its middle, of a convolution those of the first image.

    Parameters
    ----------
    text : str
        As :func:`golden.lower.zoo.source` takes it; of a job the first model.

    Raises
    ------
    ValueError
        If there is no such model, or it multiplies nothing; one line.
    """
    model, inputs = source(text)
    if isinstance(model, (list, tuple)):
        model, inputs = model[0], inputs[0]
    recorder, fast = _Recorder(), torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH), recorder:
            model(*inputs)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)
    if not recorder.found:
        raise ValueError(f"Model {text} has no matrix product")
    return recorder.found
