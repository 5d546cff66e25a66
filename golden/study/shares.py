"""Which share of a net's arithmetic is done at which width."""

import copy

import torch
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count

from ..nn.replace import hbfp_layers
from ..schedule import MixedMantissa


def _attention(query, key, value, *_, out_shape=None, **options):
    return sdpa_flop_count(query, key, value)


#: What torch's counter does not know.
EXTRA = {torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention}


def products(net: torch.nn.Module, x: torch.Tensor) -> dict[str, int]:
    """Multiply-accumulates of each module of an FP32 net for the samples ``x``, by name; the net stays as it is."""
    counter = FlopCounterMode(display=False, custom_mapping=EXTRA)
    with torch.no_grad(), counter:
        copy.deepcopy(net)(x)
    top = type(net).__name__
    return {name.removeprefix(f"{top}.") if name != top else "": sum(counts.values()) // 2
            for name, counts in counter.get_flop_counts().items() if name != "Global"}


def layer_macs(net: torch.nn.Module, counts: dict[str, int]) -> list[int]:
    """Multiply-accumulates of each HBFP layer of a converted net, with what lies inside it, from :func:`products`."""
    names = [name for name, _ in hbfp_layers(net)]
    return [counts.get(name, 0) for name in names
            if not any(name.startswith(f"{other}.") for other in names if other != name)]


def share_of(schedule: MixedMantissa, net: torch.nn.Module, counts: dict[str, int]) -> dict[int, float]:
    """Share of the HBFP arithmetic of a training at each width, for the net that is trained."""
    return schedule.share(layer_macs(net, counts))
