from .golden.nn import HBFPConfig as HBFPConfig
from .golden.nn import quantize_ as quantize_

__version__: str
