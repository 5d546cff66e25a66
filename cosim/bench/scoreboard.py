"""Compares what a core sends with what the golden model expects for what the core took, in order."""

from collections import deque

import numpy as np

from hbfp.design import Design

from ..manifest import Manifest
from .comparison import WrongBits
from .coverage import Coverage
from .reference import ConverterReference, CoreReference, wide_columns


class _Words:
    """Payloads of one stream, decoded when asked for."""

    def __init__(self, stream):
        self.stream, self.words = stream, deque()

    def __len__(self):
        return len(self.words)

    def add(self, word):
        self.words.append(word)

    def take(self, count):
        """The first ``count`` payloads as arrays by field."""
        stride = self.stream.stride
        data = b"".join(self.words.popleft().to_bytes(stride, "little") for _ in range(count))
        return self.stream.unpack(np.frombuffer(data, np.uint8).reshape(count, stride))


class _Scoreboard:
    """Queues of what was watched, by stream; subclasses compare what is complete."""

    def clear(self):
        """Forget everything in flight; for a reset."""
        for queue in self.queues.values():
            queue.words.clear()

    def taken(self, name):
        """The callback for the monitor of a stream."""
        return self.queues[name].add

    def leftovers(self):
        """Streams with payloads that nothing complete has used."""
        return [name for name, queue in self.queues.items() if len(queue)]


class ProductScoreboard(_Scoreboard):
    """Streams `i_cmd`, `i_x`, `i_w`, `i_v` against `o`.

    Parameters
    ----------
    manifest : Manifest
        The core.
    design : Design
        Its parameters.
    coverage : Coverage
        Sees each command with its data and result.
    """

    def __init__(self, manifest: Manifest, design: Design, coverage: Coverage) -> None:
        self.design, self.coverage = design, coverage
        self.reference = CoreReference(design)
        self.queues = {name: _Words(stream) for name, stream in manifest.streams.items() if not name.endswith("_q")}
        self.compared = self.commands = self.refused = 0

    def check(self) -> None:
        """Compare every command whose result is complete; call at the end, or now and then.

        Raises
        ------
        WrongBits
            On the first wrong element.
        AssertionError
            If ``last`` is not on exactly the last row.
        """
        while len(self.queues["i_cmd"]):
            word = self.queues["i_cmd"].words[0]
            peek = _Words(self.queues["i_cmd"].stream)
            peek.add(word)
            command = {name: int(value[0, 0]) for name, value in peek.take(1).items()}
            if self.reference.refuses(command):
                self.queues["i_cmd"].words.popleft()
                self.refused += 1
                continue
            if len(self.queues["o"]) < command["rows"]:
                return
            self.queues["i_cmd"].words.popleft()
            self._compare(command)

    def _compare(self, command):
        design, queues = self.design, self.queues
        x = queues["i_x"].take(command["rows"] * command["tiles"] * (1 + command.get("wide_x", 0)))
        w = queues["i_w"].take(command["tiles"] * design.rows)
        count = command.get("scale", 0) + command.get("bias", 0)
        v = queues["i_v"].take(count)["value"].astype(np.uint32) if count else ()
        got = queues["o"].take(command["rows"])
        want = self.reference.result(command, x, w, v)
        value = got["value"].astype(want.dtype)[:, ::1 + wide_columns(command)]
        wrong = np.argwhere(value != want)
        if len(wrong):
            row, column = wrong[0]
            raise WrongBits(
                f"Command {self.commands} {command}: {len(wrong)} of {want.size} elements differ, the first in row "
                f"{row}, column {column}: {int(value[row, column]):x} instead of {int(want[row, column]):x}")
        last = np.arange(command["rows"]) == command["rows"] - 1
        assert np.array_equal(got["last"][:, 0].astype(bool), last), f"Command {self.commands}: last is misplaced"
        self.coverage.product(command, x, w, want)
        self.compared += want.size
        self.coverage.compared += want.size
        self.commands += 1


class ConverterScoreboard(_Scoreboard):
    """Streams `i_q` against `o_q`, or ``names``; other parameters as :class:`ProductScoreboard`."""

    def __init__(self, manifest: Manifest, design: Design, coverage: Coverage,
                 names: tuple[str, str] = ("i_q", "o_q")) -> None:
        self.design, self.coverage, self.names = design, coverage, names
        self.queues = {name: _Words(manifest.streams[name]) for name in names}
        self.compared = 0
        self.clear()

    def clear(self) -> None:
        """Start anew, as a reset does."""
        self.reference = ConverterReference(self.design)
        super().clear()

    def check(self) -> None:
        """Compare all complete blocks.

        Raises
        ------
        WrongBits
            On the first wrong element.
        """
        beats = self.design.encode_beats
        taken, sent = (self.queues[name] for name in self.names)
        count = len(sent) // beats * beats
        if not count:
            return
        fields = taken.take(count)
        value, wide = fields["value"], fields.get("wide")
        got, want = sent.take(count), self.reference.result(value, None if wide is None else wide[:, 0])
        for name, expected in want.items():
            array = got[name].reshape(expected.shape).astype(expected.dtype)
            wrong = np.argwhere(array != expected)
            if len(wrong):
                where = tuple(wrong[0])
                raise WrongBits(f"{self.names[1]} {name}, beat {where[0]}: {len(wrong)} of {expected.size} "
                                     f"differ, the first is {array[where]} instead of {expected[where]}")
        self.coverage.conversion(value, want, None if wide is None else wide.reshape(-1, beats)[:, -1].astype(bool))
        self.compared += value.size
        self.coverage.compared += value.size
