"""Nested tensors of layout ``torch.jagged``: samples of several lengths, behind each other in one tensor of rows.

Products take the rows as those of a dense tensor, so that a sample has the bits that it has alone; attention goes
sample by sample.
"""

from collections.abc import Callable
from typing import Any

import torch

#: What attention of nested tensors lacks.
PLAIN = "Attention of nested tensors takes no masks, gives no weights and needs batch_first: is_causal and " \
        "need_weights=False work, and padded tensors take masks"


def jagged(x: Any) -> bool:
    """Whether a tensor is nested with rows of several samples and without gaps, its last dimension that of all."""
    return (isinstance(x, torch.Tensor) and x.is_nested and x.layout == torch.jagged and x.lengths() is None
            and x._ragged_idx < x.dim() - 1)


def by_rows(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """``function`` of the rows of ``x`` (N, \\*, ..., K), nested as they are; of another tensor as it is."""
    if not jagged(x):
        return function(x)
    return torch.nested.nested_tensor_from_jagged(function(x.values()), x.offsets(), jagged_dim=x._ragged_idx)


def by_samples(attend: Callable[..., torch.Tensor], query: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
    """Attention (N, heads, \\*, d) of query, key and value, sample by sample: ``attend`` takes (heads, L, d)."""
    turned = [x.transpose(1, 2) for x in (query, *others)]
    samples = [x.values().split(x.offsets().diff().tolist()) for x in turned]
    rows = [attend(*(each.transpose(0, 1) for each in own)).transpose(0, 1) for own in zip(*samples, strict=True)]
    found = torch.cat(rows) if rows else turned[0].values()
    return torch.nested.nested_tensor_from_jagged(found, turned[0].offsets()).transpose(1, 2)
