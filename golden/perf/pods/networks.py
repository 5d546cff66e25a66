"""Networks by name, each from its own definition (torchvision's, or BERT's configuration), or from a user's file.

``NAME@SIZE`` is another size of image, or another number of tokens.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from .bert import CONFIGS, Bert
from .catalogue import NAMES, SIZES
from .graph import Graph
from .trace import trace


def torchvision() -> ModuleType:
    """torchvision, also where its compiled operators cannot be loaded.

    Its wheel is built against torch with CUDA. Beside a torch without, its import fails for the want of two operators
    that no classifier uses; those are declared.
    """
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name in [each for each in sys.modules if each.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        _LIBRARY.append(torch.library.Library("torchvision", "DEF"))
        for operator in ("nms", "qnms"):
            _LIBRARY[0].define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
    return torchvision


#: What was declared lives as long as this list.
_LIBRARY: list[Any] = []


def _first_strides(model: nn.Module) -> nn.Module:
    """A ResNet whose blocks have their stride in the first 1 x 1 convolution, as in the paper and in Keras."""
    for block in model.modules():
        if type(block).__name__ == "Bottleneck":
            assert isinstance(block.conv1, nn.Conv2d) and isinstance(block.conv2, nn.Conv2d)
            block.conv1.stride, block.conv2.stride = block.conv2.stride, (1, 1)
    return model


def _image_model(name: str) -> nn.Module:
    base, _, version = name.partition("-")
    plain = {"inception": "inception_v3"}.get(base, base)
    options = {"init_weights": False, "aux_logits": False} if plain == "inception_v3" else {}
    model = getattr(torchvision().models, plain)(weights=None, **options)
    return _first_strides(model) if version == "v1" else model


def named(name: str, batch: int = 1) -> Graph:
    """A network of the catalogue, its products for a batch.

    Parameters
    ----------
    name : str
        Of :data:`golden.perf.pods.catalogue.NAMES`, with ``@SIZE`` if it is not the usual one.
    batch : int

    Raises
    ------
    ValueError
        If the network is not there, or does not work at this size; one line.
    """
    plain, _, given = name.partition("@")
    if plain not in NAMES:
        raise ValueError(f"network {plain} is not in the catalogue")
    size = int(given) if given else SIZES[plain]
    with torch.device("meta"):
        if plain in CONFIGS:
            config = CONFIGS[plain]
            return trace(name, Bert(config), (torch.empty(batch, size, config.width),))
        try:
            return trace(name, _image_model(plain), (torch.empty(batch, 3, size, size),))
        except RuntimeError as error:    # pixels that a pool or a convolution has not
            raise ValueError(" ".join(str(error).split())) from None


def from_file(path: Path, train: bool = False) -> Graph:
    """The model of a user's file, which defines ``model()`` and ``inputs()``.

    Raises
    ------
    ValueError
        If the file does not, or what they give is no model or cannot be traced; one line.
    """
    space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(compile(path.read_bytes(), str(path), "exec"), space)
        missing = next((each for each in ("model", "inputs") if not callable(space.get(each))), None)
        if missing:
            raise ValueError(f"defines no function {missing}()")
        make: Callable[[], Any] = space["model"]
        model, inputs = make(), space["inputs"]()
        if not isinstance(model, nn.Module):
            raise ValueError(f"model() gives {type(model).__name__}, not a torch.nn.Module")
        if not isinstance(inputs, tuple) or not all(isinstance(each, torch.Tensor) for each in inputs):
            raise ValueError("inputs() gives no tuple of tensors")
        return trace(path.stem, model, inputs, train)
    except Exception as error:    # whatever a user's code raises
        text = " ".join(str(error).split()) or "without a message"
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{path}: {kind}{text}") from None
