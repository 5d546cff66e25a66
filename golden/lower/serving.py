"""A program that serves: each request of its batch lies anywhere, and its answer goes anywhere.

What a model is lowered to reads its inputs from one place in DRAM and leaves its outputs in another. A serving program
brings each sample there first, from the place of its request's input, and takes each answer to that of its output.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import torch

from hbfp.checks import check_kind
from hbfp.golden.machine.layouts import pack, unpack
from hbfp.isa.instructions import Memory, Opcode
from hbfp.program import Layer, Program, Tensor
from hbfp.system import Accelerator

from .builder import Builder
from .errors import LoweringError
from .graph import traced
from .lowering import Lowered, finished
from .network import Network
from .schedule import Span

#: Bytes within which bursts end.
PAGE = 4096
#: Pieces of V that take turns while samples are copied.
_PIECES = 8


@dataclass(frozen=True)
class Part:
    """A tensor as one request has it: a sample.

    Attributes
    ----------
    name : str
        Of the tensor in the program, whose first side is the batch.
    tensor : Tensor
        That tensor.
    order : tuple of int
        The dimensions of torch's tensor, in the order in which the program has them; the batch is the first.
    offset : int
        Bytes from the request's place to it, a multiple of the beat.
    size : int
        Its bytes; the next begins at a beat.
    """
    name: str
    tensor: Tensor
    order: tuple[int, ...]
    offset: int
    size: int

    def address(self, sample: int) -> int:
        """Byte of a sample in the program's own tensor."""
        return self.tensor.address + sample * self.size

    @property
    def one(self) -> Tensor:
        """A tensor of a single sample, at a request's address."""
        return replace(self.tensor, address=self.offset, shape=(1, *self.tensor.shape[1:]))


@dataclass(frozen=True)
class Serving:
    """A program whose batch is of requests.

    Attributes
    ----------
    lowered : Lowered
        The program, and what PyTorch computes of the inputs that it was lowered with.
    batch : int
        Requests of a full batch. One with fewer repeats the addresses of its last.
    inputs, outputs : tuple of Part
        What lies at a request's input address, and at its output address.
    """
    lowered: Lowered
    batch: int
    inputs: tuple[Part, ...]
    outputs: tuple[Part, ...]

    @property
    def program(self) -> Program:
        """The program."""
        return self.lowered.program

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes that a request's input takes, and its output, whole beats."""
        beat = self.program.accelerator.beat
        one, two = (-(-(parts[-1].offset + parts[-1].size) // beat) * beat for parts in (self.inputs, self.outputs))
        return one, two

    def request(self, sample: Sequence[torch.Tensor]) -> bytes:
        """What a client puts at its input's place: of each input a batch of one, as torch has it."""
        data = bytearray(self.sizes[0])
        for part, each in zip(self.inputs, sample, strict=True):
            laid = each.detach().float().permute(part.order).contiguous().numpy()
            around = [((whole - own) // 2,) * 2 for whole, own in zip(part.one.shape, laid.shape, strict=True)]
            data[part.offset:part.offset + part.size] = pack(
                self.program.accelerator, part.one, np.pad(laid, around))      # images may lie within zeros
        return bytes(data)

    def answer(self, data: bytes) -> list[np.ndarray]:
        """What a client finds at its output's place: each output as torch gives it for a batch of one, float32."""
        return [unpack(self.program.accelerator, part.one, data[part.offset:part.offset + part.size])
                .transpose(np.argsort(part.order)) for part in self.outputs]

    @property
    def slot(self) -> int:
        """Bytes that a request may have for input and output together, so that none of many in a row lies otherwise to
        pages than another, and each takes the same cycles."""
        size = sum(self.sizes)
        return -(-size // PAGE) * PAGE if size > PAGE else 1 << (size - 1).bit_length()

    def addresses(self, slot: int) -> tuple[int, int]:
        """Addresses of the input and the output of the request in a slot, behind all that the program has."""
        first = -(-self.program.limit // PAGE) * PAGE + slot * self.slot
        return first, first + self.sizes[0]

    @property
    def full(self) -> Program:
        """The program with a full batch of requests, whose times are those of any other."""
        return self.batch_of(range(self.batch), self.batch)

    def batch_of(self, slots: Sequence[int], count: int) -> Program:
        """The program with the requests of these slots of ``count``, and a limit that reaches all."""
        return replace(self.program, requests=tuple(self.addresses(slot) for slot in slots),
                       limit=max(self.program.limit, self.addresses(count)[0]))


@dataclass
class _Network(Network):
    """A model on its way into a program that first brings its inputs to where they lie in ``known``, which another
    lowering of it has found, and last takes its outputs away."""
    known: tuple[Part, ...] = ()
    answers: tuple[Part, ...] = ()

    def layer_by_layer(self) -> Iterator[Layer]:
        yield from self._copies("requests", self.known, True)
        yield from super().layer_by_layer()
        self.answers = _parts(self, self.outputs, "output")
        yield from self._copies("answers", self.answers, False)

    def _copies(self, name: str, parts: tuple[Part, ...], into: bool) -> Iterator[Layer]:
        first, schedule = len(self.build.schedule.instructions), self.build.schedule
        schedule.kind = name
        for sample in range(parts[0].tensor.shape[0] if parts else 0):
            for part in parts:
                _copy(self.build, part, sample, into)
        if len(schedule.instructions) > first:
            self.layers.append(Layer(name, first, len(schedule.instructions)))
            yield self.layers[-1]


def _copy(build, part, sample, into):
    """Copy a sample from its request into the program's tensor, or from there to its answer."""
    beat = build.beat
    whole, at = -(-part.size // beat), part.address(sample)
    most = max(1, min(whole, build.v.size // _PIECES))
    for first in range(0, whole, most):
        words = min(most, whole - first)
        piece, far = build.v.take(words), part.offset + first * beat
        size = min(words * beat, part.size - first * beat)
        here = Span("DRAM", at + first * beat, at + first * beat + size)
        there = {"offset": far, "request": sample + 1}
        if into:
            _words(build, Opcode.LOAD, there, words, piece, [], [piece])
            _out(build, here, piece)
        else:
            _words(build, Opcode.LOAD, {"offset": here.start}, words, piece, [here], [piece])
            _words(build, Opcode.STORE, there, words, piece, [piece], [])


def _words(build, opcode, values, words, piece, reads, writes):
    build.schedule.emit(opcode, ({"memory": Memory.V} if opcode == Opcode.LOAD else {}) | values | {
        "base": piece.start, "count0": words, "count1": 1, "count2": 1}, reads, writes)


def _out(build, here, piece):
    """Store bytes of a piece of V to where they belong, which may begin within a beat."""
    size, beat = here.stop - here.start, build.beat
    if here.start % beat == 0 and size % beat == 0:
        _words(build, Opcode.STORE, {"offset": here.start}, size // beat, piece, [piece], [here])
        return
    for first, run, count in ((0, build.lanes, size // beat), (size // beat, size % beat // 4, 1)):
        if run and count:
            build.schedule.emit(Opcode.STORE, {
                "elements": 1, "offset": here.start + first * beat, "base": piece.start + first, "run": run,
                "count0": count, "dram0": beat, "buffer0": 1, "count1": 1, "count2": 1}, [piece], [here])


def _parts(net, names, role):
    """Tensors as requests have them."""
    parts, offset, accelerator = list[Part](), 0, net.build.accelerator
    for name in names:
        tensor, order = net.tensors.get(name), net.orders.get(name)
        if tensor is None:
            raise LoweringError(f"The {role} {name} cannot be a request's: the program holds it; real numbers would do")
        if len(tensor.shape) < 2 or order[0] != 0:
            raise LoweringError(f"The {role} {name} of shape {tensor.shape} cannot be of several requests; a batch as "
                                "its first dimension, and others behind it, would do")
        if parts and tensor.shape[0] != parts[0].tensor.shape[0]:
            raise LoweringError(f"The {role} {name} must be of {parts[0].tensor.shape[0]} requests, as {parts[0].name} "
                                f"is, not {tensor.shape[0]}")
        size = prod(tensor.shape[1:-1]) * tensor.row_bytes(accelerator)
        parts.append(Part(name, tensor, tuple(order), offset, size))
        offset += -(-size // accelerator.beat) * accelerator.beat
    return tuple(parts)


def lower_serving(model: torch.nn.Module, inputs: tuple[Any, ...], accelerator: Accelerator) -> Serving:
    """The program of a model in evaluation that serves requests, ``inputs`` being a full batch of them.

    Parameters
    ----------
    model, inputs, accelerator
        As of :func:`~golden.lower.lowering.lower`. The first dimension of all inputs and outputs is the batch.

    Returns
    -------
    Serving

    Raises
    ------
    LoweringError
        As :func:`~golden.lower.lowering.lower`; also if an input or output is no batch, or of whole numbers, which a
        program holds.
    """
    check_kind("accelerator", accelerator, Accelerator)
    check_kind("model", model, torch.nn.Module)
    if accelerator.core.format.square:
        raise LoweringError("Requests of one batch would share exponents in square tiles; --block 1,B would do")
    graph = traced(model, inputs, accelerator)
    if (most := accelerator.requests) < (batch := len(inputs[0])):
        raise LoweringError(f"A batch must be of 1 to {most} requests, which the dispatcher gives, not {batch}; "
                            f"--dispatch-batch {batch} would do" if most else "Requests need --dispatch")
    found = _Network(graph, Builder(accelerator))
    finished(found.build, [found])                    # where inputs lie: nothing of it changes with what copies them
    if len(inputs) != len(graph.inputs):
        raise LoweringError("Inputs of requests must be real numbers that the model reads; whole numbers are the "
                            "program's own")
    parts = _parts(found, list(graph.inputs.values()), "input")
    net = _Network(graph, Builder(accelerator), known=parts)
    lowered = finished(net.build, [net])
    assert all(net.tensors[part.name] == part.tensor for part in parts)
    if net.answers[0].tensor.shape[0] != batch:
        raise LoweringError(f"Outputs must be of {batch} requests, as inputs are, not "
                            f"{net.answers[0].tensor.shape[0]}")
    return Serving(lowered, batch, parts, net.answers)

