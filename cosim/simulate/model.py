"""A Verilated model that is open: its library, and its handle until it is closed."""

import ctypes


class Model:
    """What simulations of every kind have: a handle in a library whose functions are named ``sim_...``.

    A subclass calls :meth:`_open` when its library is built; the library has ``sim_close``, ``sim_cycle`` and
    ``sim_trace``.
    """

    def _open(self, path, functions, *arguments):
        """Load a library and open the model; ``functions`` are (name, result, arguments), as ctypes has them."""
        self._library = ctypes.CDLL(str(path))
        for name, result, taken in functions:
            function = getattr(self._library, f"sim_{name}")
            function.restype, function.argtypes = result, taken
        self._handle = self._library.sim_open(*arguments)

    def _trace(self, path):
        """Write a VCD file from here on; OSError if it cannot be written."""
        if not self._library.sim_trace(self._handle, str(path).encode()):
            raise OSError(f"Trace file {path} cannot be written")

    def close(self) -> None:
        """Finish the trace and free the model."""
        if self._handle:
            self._library.sim_close(self._handle)
            self._handle = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def cycle(self) -> int:
        """Clock cycles so far, those of resets included."""
        return self._library.sim_cycle(self._handle)
