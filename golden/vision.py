"""torchvision, beside any build of torch."""

import sys
from types import ModuleType
from typing import Any

import torch

from hbfp.values import OptionError, shown

#: What was declared lives as long as this list.
_LIBRARY: list[Any] = []


def torchvision() -> ModuleType:
    """torchvision, also where its compiled operators cannot be loaded.

    Its wheel is built against torch with CUDA. Beside a torch without, its import fails for the want of two operators
    that no classifier uses; those are declared.

    Raises
    ------
    OptionError
        If it fails otherwise beside the torch that is there; one line.
    """
    try:
        import torchvision
    except ModuleNotFoundError:
        raise
    except (ImportError, OSError, RuntimeError) as error:
        if "torchvision::nms" not in str(error):
            line = f"torchvision cannot be loaded beside torch {torch.__version__} ({shown(error)})"
            raise OptionError(f"{line}; install both of one build: pip install 'hbfp[networks]'") from None
        for name in [each for each in sys.modules if each.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _LIBRARY.append(torch.library.Library("torchvision", "DEF"))
        for operator in ("nms", "qnms"):
            _LIBRARY[0].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
    return torchvision
