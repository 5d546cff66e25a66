"""HBFP layers and training in PyTorch, equal to the NumPy golden model bit for bit.

    import golden.nn
    model = golden.nn.convert(model, golden.nn.HBFPFormat(mantissa=8))
"""

from hbfp.format import HBFPFormat

from ..schedule import MixedMantissa
from . import functional
from .formats import Formats
from .frozen import freeze, thaw
from .inspect import fp32_products
from .layers import HBFPLSTM, HBFPConv2d, HBFPLinear, HBFPMultiheadAttention
from .operand_errors import Errors, errors
from .optimiser import wide_weights
from .quantise import quantise
from .replace import convert, hbfp_layers
from .report import Report, report
from .side import DESIGN_SIDE, Distance, Side, distances
from .sparsify import densify, sparsify
from .state import weights

__all__ = ["DESIGN_SIDE", "Distance", "Errors", "Formats", "HBFPConv2d", "HBFPFormat", "HBFPLSTM", "HBFPLinear",
           "HBFPMultiheadAttention", "MixedMantissa", "Report", "Side", "convert", "densify", "distances", "errors",
           "fp32_products", "freeze", "functional", "hbfp_layers", "quantise", "report", "sparsify", "thaw",
           "weights", "wide_weights"]
