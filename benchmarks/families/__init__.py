"""Ninety-nine small networks as users have them: of torchvision, of transformers, and of plain torch.nn.

Each is an entry: a function that makes a model with random weights, in evaluation, and its inputs; nothing is
downloaded. What it needs of a library is imported when it is made, so that the names are known without.
"""

from zlib import crc32

import torch

from hbfp.golden.lower.source import Source

from . import images, language, plain

#: Family -> name of a network -> what makes it.
FAMILIES = {"torchvision": images.NETWORKS, "transformers": language.NETWORKS, "plain": plain.NETWORKS}
#: Name of a network -> its family.
NETWORKS = {name: family for family, made in FAMILIES.items() for name in made}


def network(name: str) -> Source:
    """A network and its inputs, the same at every call.

    Raises
    ------
    KeyError
        If there is none of that name.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(crc32(name.encode()))
        model, inputs = FAMILIES[NETWORKS[name]][name]()
        _settle(model)
    return model.eval(), inputs


def _settle(model):
    """Give norms of batches statistics, and factors and addends, that are not those of a norm that does nothing."""
    for part in model.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
            torch.nn.init.uniform_(part.weight, 0.5, 1.5)
            torch.nn.init.normal_(part.bias, 0, 0.1)
