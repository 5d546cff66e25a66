"""Networks by name, each from its own definition (torchvision's, or BERT's configuration), or from a user's file.

``NAME@SIZE`` is another size of image, or another number of tokens.
"""

from pathlib import Path

import torch
from torch import nn

from hbfp.golden.lower.bert import CONFIGS, Bert, Pretraining
from hbfp.golden.lower.export import exported
from hbfp.golden.lower.source import read

from ...vision import torchvision
from .catalogue import NAMES, PUBLISHED_BERTS, SIZES
from .fused import jobs
from .graph import Graph
from .trace import on_meta, record, trace


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


def network(name: str, batch: int = 1) -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """A network of the catalogue and inputs, on the device that is in force; arguments as of :func:`named`."""
    plain, _, given = name.partition("@")
    if plain not in NAMES:
        raise ValueError(f"network {plain} is not in the catalogue")
    size = int(given) if given else SIZES[plain]
    base = plain.removesuffix("-v1")
    if base in CONFIGS:
        kind = Pretraining if plain in PUBLISHED_BERTS else Bert
        return kind(CONFIGS[base]), (torch.empty(batch, size, CONFIGS[base].width),)
    return _image_model(plain), (torch.empty(batch, 3, size, size),)


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
    with torch.device("meta"):
        model, given = network(name, batch)
        try:
            return trace(name, model, given)
        except RuntimeError as error:    # pixels that a pool or a convolution has not
            raise ValueError(" ".join(str(error).split())) from None


def lowered(name: str, model: nn.Module, inputs: tuple[torch.Tensor, ...], train: bool = False) -> Graph:
    """As :func:`golden.perf.pods.trace.trace`, of the graph that the accelerator's programs are made from, too."""
    with torch.device("meta"):                         # what its forward makes anew
        if not all(isinstance(each, torch.Tensor) for each in inputs):
            raise ValueError("inputs() must give tensors alone")
        model, given = on_meta(model, inputs)
        return record(name, exported(model, given).module(), given, train)


def from_file(path: Path, train: bool = False) -> Graph:
    """The model of a user's file, which defines ``model()`` and ``inputs()``; or a job, as one graph.

    Raises
    ------
    ValueError
        If the file does not, or what they give is no model or cannot be traced, or models of a job differ; one line.
    """
    try:
        model, inputs = read(str(path))
        if isinstance(model, list):
            return _job([lowered(path.stem, *each, train) for each in zip(model, inputs, strict=True)])
        return lowered(path.stem, model, inputs, train)
    except Exception as error:    # whatever a user's code raises
        text = " ".join(str(error).split()) or "without a message"
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"{path}: {kind}{text}") from None


def _job(graphs):
    """Models of one shape as one graph."""
    odd = next((number for number, each in enumerate(graphs) if each.gemms != graphs[0].gemms), None)
    if odd is not None:
        raise ValueError(f"Model {odd} of the job has other products than model 0; models of one shape would do")
    return jobs(graphs[0], len(graphs))
