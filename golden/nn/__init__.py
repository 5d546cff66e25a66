"""HBFP layers and training in PyTorch, equal to the NumPy golden model bit for bit.

    import hbfp.golden.nn as gn    # in a checkout golden.nn is a short name of it
    model = gn.convert(model, gn.HBFPFormat(mantissa=8))
"""

from hbfp import extras
from hbfp.format import HBFPFormat

if line := extras.lacking("torch"):
    raise ModuleNotFoundError(line, name="torch")

from ..schedule import MixedMantissa
from . import functional
from .calibrate import calibrate
from .config import HBFPConfig, quantize_
from .error_log import ErrorLog
from .format_schedule import FormatSchedule
from .formats import Formats
from .frozen import freeze, thaw
from .inspect import fp32_products
from .layers import HBFPLSTM, HBFPConv2d, HBFPLinear, HBFPMultiheadAttention
from .operand_errors import Errors, errors
from .optimiser import optimiser, wide_weights
from .placed import begin_step
from .quantise import quantise
from .replace import convert, hbfp_layers
from .report import Report, report
from .side import DESIGN_SIDE, Distance, Side, distances, sided
from .sparsify import densify, sparsify
from .state import weights

__all__ = ["DESIGN_SIDE", "Distance", "ErrorLog", "Errors", "FormatSchedule", "Formats", "HBFPConfig", "HBFPConv2d",
           "HBFPFormat", "HBFPLSTM", "HBFPLinear", "HBFPMultiheadAttention", "MixedMantissa", "Report", "Side",
           "begin_step", "calibrate", "convert", "densify", "distances", "errors", "fp32_products", "freeze",
           "functional", "hbfp_layers", "optimiser", "quantise", "quantize_", "report", "sided", "sparsify", "thaw",
           "weights", "wide_weights"]
