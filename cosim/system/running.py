"""A simulated system on which firmware runs, and what came of that."""

from dataclasses import dataclass, field

import numpy as np

from ..accelerator.device import BusError
from ..simulate.model import Model

#: Cycles at a time.
_STRETCH = 1_000_000
#: What ``sim_run`` gives when firmware has ended, and when its cycles are over; a system may have further ones.
ENDED, LIMIT = range(2)


@dataclass(frozen=True)
class Ran:
    """What came of firmware.

    Attributes
    ----------
    said : str
        What it has printed.
    code : int
        What it has returned.
    cycles : int
        From reset to its end.
    scores : ndarray of float32
        The network's output.
    interrupts : dict of str to int
        What became of them, where that is counted.
    """
    said: str
    code: int
    cycles: int
    scores: np.ndarray
    interrupts: dict[str, int] = field(default_factory=dict)


class Running(Model):
    """A model whose library has ``sim_run``, ``sim_code`` and ``sim_said``, too."""

    def run(self, limit: int) -> tuple[int, str]:
        """Go on until the firmware ends, ``limit`` cycles at most: what it returns, and what it has printed.

        Raises
        ------
        BusError
            If it does not end, or as the system says.
        """
        status = LIMIT
        while status == LIMIT and self.cycle < limit:
            status = self._library.sim_run(self._handle, min(_STRETCH, limit - self.cycle))
        if status != ENDED:
            raise BusError(f"Cycle {self.cycle}: {self._broken(status)}")
        return self._library.sim_code(self._handle), self.said

    def _broken(self, status):
        """Why firmware has not ended."""
        assert status == LIMIT
        return "the firmware has not ended"

    @property
    def said(self) -> str:
        """What the firmware has said so far."""
        return self._library.sim_said(self._handle).decode(errors="replace")
