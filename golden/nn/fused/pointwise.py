"""Layers without parameters, on all models at once."""

import torch
from torch import nn

from .each import Each

#: Exact on each element or sample, wherever it stands: one call for all models.
EXACT = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.Threshold, nn.Identity, nn.Flatten, nn.Unflatten,
         nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d,
         nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d,
         nn.AdaptiveMaxPool1d, nn.AdaptiveMaxPool2d, nn.AdaptiveMaxPool3d)
#: Functions whose last bits depend on whether torch takes an element with others as a vector, or alone at the end.
ROUNDED = (nn.GELU, nn.SiLU, nn.Mish, nn.Tanh, nn.Sigmoid, nn.LogSigmoid, nn.ELU, nn.SELU, nn.CELU, nn.Softplus,
           nn.Hardswish, nn.Hardsigmoid, nn.Softsign)
#: Numbers that every vector length of torch divides, loops of several vectors included.
VECTORS = 128


class Pointwise(Each):
    """A function of each element: one call where no model's part ends amid a vector, else model by model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Shape of ``x``."""
        if x.numel() // self.count % (VECTORS * torch.get_num_threads()) or not self._dense(x):
            return super().forward(x)
        return self.layers[0](x)

    @staticmethod
    def _dense(x):
        return x.is_contiguous() or x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
