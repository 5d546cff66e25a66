"""The manifest beside emitted Verilog, and payloads of its streams packed from and to NumPy arrays."""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from hbfp import manifest
from hbfp.design import Design
from hbfp.manifest import Field


def port_bytes(width: int) -> int:
    """Bytes of a port in a Verilated model: 1, 2, 4, 8, then multiples of 4."""
    return next((size for size in (1, 2, 4, 8) if width <= 8 * size), -(-width // 32) * 4)


@dataclass(frozen=True)
class Stream:
    """One stream of the top module: ``NAME__payload``, ``NAME__valid``, ``NAME__ready``.

    Payloads are rows of bytes, little-endian and zero-filled to :attr:`stride`, which is how a
    Verilated model stores a port of that width.
    """
    name: str
    direction: str
    width: int
    fields: tuple[Field, ...]

    @property
    def stride(self) -> int:
        """Bytes of one payload in a Verilated model."""
        return port_bytes(self.width)

    @cached_property
    def field(self) -> dict[str, Field]:
        """Fields by name."""
        return {field.name: field for field in self.fields}

    def pack(self, **values: ArrayLike) -> np.ndarray:
        """Payloads of integer arrays, one per field, each of shape (beats, count) or (beats,) where count is 1.

        Fields that are not named are zero. Values are taken modulo 2^width.

        Returns
        -------
        ndarray of uint8, (beats, stride)

        Raises
        ------
        ValueError
            If a name is no field of the stream, or a shape does not fit.
        """
        arrays = {}
        for name, value in values.items():
            if name not in self.field:
                raise ValueError(f"Stream {self.name} has no field {name!r}; it has {', '.join(self.field)}")
            array, count = np.asarray(value), self.field[name].count
            array = array[:, None] if array.ndim == 1 and count == 1 else array
            if array.ndim != 2 or array.shape[1] != count:
                raise ValueError(f"Field {name} of stream {self.name} needs shape (beats, {count}), not {array.shape}")
            arrays[name] = array
        beats = {len(array) for array in arrays.values()}
        if len(beats) != 1:
            raise ValueError(f"Fields of stream {self.name} must have the same number of beats, not {sorted(beats)}")
        payload = np.zeros((beats.pop(), self.stride), np.uint8)
        bits = None
        for name, array in arrays.items():
            field = self.field[name]
            if field.whole:
                words = array.astype(f"<u{field.width // 8}" if array.dtype.kind == "u" else f"<i{field.width // 8}")
                payload[:, field.bytes] = np.ascontiguousarray(words).view(np.uint8)
                continue
            if bits is None:
                bits = np.zeros((len(payload), 8 * self.stride), np.uint8)
            ones = (array.astype(np.int64)[:, :, None] >> np.arange(field.width)) & 1
            bits[:, field.offset:field.offset + field.count * field.width] = ones.reshape(len(payload), -1)
        if bits is not None:
            payload |= np.packbits(bits, axis=1, bitorder="little")
        return payload

    def unpack(self, payload: np.ndarray) -> dict[str, np.ndarray]:
        """Integer arrays (beats, count) by field name, of payloads (beats, stride)."""
        payload = np.ascontiguousarray(payload, np.uint8)
        bits, values = None, {}
        for field in self.fields:
            if field.whole:
                kind = "i" if field.signed else "u"
                part = np.ascontiguousarray(payload[:, field.bytes])
                values[field.name] = part.view(f"<{kind}{field.width // 8}")
                continue
            if bits is None:
                bits = np.unpackbits(payload, axis=1, bitorder="little")
            part = bits[:, field.offset:field.offset + field.count * field.width]
            part = part.reshape(len(payload), field.count, field.width).astype(np.int64)
            weights = 1 << np.arange(field.width, dtype=np.int64)
            if field.signed:
                weights[-1] = -weights[-1]
            values[field.name] = part @ weights
        return values


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says, and where it lies.

    Attributes
    ----------
    path : Path
        The file; the Verilog lies beside it.
    data : hbfp.manifest.Manifest
        The file's content.
    """
    path: Path
    data: manifest.Manifest

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a manifest, or the manifest in a folder."""
        path = Path(path)
        path = path / manifest.FILE if path.is_dir() else path
        return cls(path, manifest.Manifest.load(path))

    @property
    def top(self) -> str:
        """Name of the top module."""
        return self.data.top

    @property
    def verilog(self) -> Path:
        """Path of the Verilog file."""
        return self.path.parent / self.data.verilog

    @property
    def ports(self) -> dict[str, manifest.Port]:
        """Port name -> :class:`~hbfp.manifest.Port`."""
        return self.data.ports

    @cached_property
    def design(self) -> Design:
        """The :class:`~hbfp.design.Design` that the parameters describe."""
        assert self.data.design is not None, f"{self.top} belongs to no design"
        return self.data.design

    @property
    def latency(self) -> dict[str, int]:
        """Cycles by name."""
        return self.data.latency

    @cached_property
    def streams(self) -> dict[str, Stream]:
        """Stream name -> :class:`Stream`, in the manifest's order."""
        return {name: Stream(name, entry.direction, entry.width, entry.fields)
                for name, entry in self.data.streams.items()}

    def inputs(self) -> list[Stream]:
        """Streams into the module."""
        return [stream for stream in self.streams.values() if stream.direction == "in"]

    def outputs(self) -> list[Stream]:
        """Streams out of the module."""
        return [stream for stream in self.streams.values() if stream.direction == "out"]

    def flags(self) -> list[str]:
        """Outputs of at most 64 bits that belong to no stream, such as ``error``."""
        parts = {f"{name}__{part}" for name in self.streams for part in ("payload", "valid", "ready")}
        return [name for name, port in self.ports.items()
                if port.direction == "out" and name not in parts and port.width <= 64]
