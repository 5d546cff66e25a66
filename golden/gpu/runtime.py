"""Whether kernels can run, and on what."""

import os
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import lru_cache

import torch

from hbfp.extras import lacking

from ..within import within

#: Whether Triton runs the kernels in Python, on the CPU: ``TRITON_INTERPRET=1`` when this was imported.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
#: The least compute capability: int8 and bfloat16 on tensor cores.
LEAST = (8, 0)
_FORCED = ContextVar("gpu", default=False)


def forced() -> AbstractContextManager[None]:
    """Within, ``golden.nn`` takes tensors on the CPU this way, too, where Triton interprets."""
    return within(_FORCED, True)


@lru_cache(64)
def problem(device: torch.device) -> str | None:
    """Why kernels cannot run on a device, in one line, or None; :func:`check` raises it."""
    if (line := lacking("triton")) is not None:
        return line
    if device.type == "cpu":
        return None if INTERPRETED else ("Tensors must be on a CUDA device, not cpu, where kernels are interpreted if "
                                         "TRITON_INTERPRET=1 is set")
    if device.type != "cuda":
        return f"Tensors must be on a CUDA device, not {device.type}"
    if INTERPRETED:
        return "TRITON_INTERPRET=1 is set, which takes tensors on the CPU, not on a CUDA device"
    found = torch.cuda.get_device_capability(device)
    return None if found >= LEAST else (
        f"GPU must have compute capability {LEAST[0]}.{LEAST[1]} or more, not {found[0]}.{found[1]} "
        f"({torch.cuda.get_device_name(device)})")


def check(device: torch.device) -> None:
    """Raise what keeps kernels from running on a device: ``ImportError`` without Triton, else ``ValueError``."""
    if (line := problem(device)) is not None:
        raise ImportError(line, name="triton") if lacking("triton") else ValueError(line)


def serves(x: torch.Tensor) -> bool:
    """Whether ``golden.nn`` gives a tensor to the kernels."""
    kind = x.device.type
    return (kind == "cuda" or kind == "cpu" and _FORCED.get()) and problem(x.device) is None


def on(x: torch.Tensor) -> AbstractContextManager[object]:
    """Within, kernels are launched on a tensor's device."""
    return torch.cuda.device(x.device) if x.device.type == "cuda" else nullcontext()


@lru_cache
def on_hopper(device: torch.device) -> bool:
    """Whether a device has the asynchronous tensor cores that :mod:`golden.gpu.overlapped_kernel` is written for."""
    return not INTERPRETED and device.type == "cuda" and torch.cuda.get_device_capability(device)[0] == 9


@lru_cache
def shared_memory(device: torch.device) -> int:
    """Bytes of shared memory that a program's copies of operands may take: what it can have, less some for the rest."""
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin - (24 << 10)


@lru_cache
def multiprocessors(device: torch.device) -> int:
    """How many multiprocessors a device has."""
    return torch.cuda.get_device_properties(device).multi_processor_count
