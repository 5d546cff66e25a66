from .golden.nn import HBFPConfig as HBFPConfig
from .golden.nn import quantize_ as quantize_
from .runtime.device import Device as Device

__version__: str
