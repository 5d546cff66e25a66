"""Models that count what is reached of their text while they are open."""

import ctypes
import os
from pathlib import Path

from cosim.accelerator.device import Device
from cosim.simulate.player import Player
from cosim.simulate.verilator import build_library
from hbfp import files

#: A way out for what was counted, behind an accelerator's driver, and at the end of what a player plays.
WRITE = """
extern "C" API void sim_coverage(Simulation* sim, const char* path) { sim->context.coveragep()->write(path); }
"""
PLAYED = "HBFP_PLAYED"
_END = "\n    }\n}\n"


class Counting:
    """Accelerators and players count, in files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.files = folder, 0

    def _file(self):
        self.files += 1
        return str(self.folder / f"{self.files}.dat")

    def __enter__(self):
        self.kept = Device._built, Device.close, Player._built, Player.play
        counting, (_, close, _, play) = self, self.kept

        def built(_, verilog, top, sources, *, trace, level, **options):
            counts = {name: text + WRITE * name.startswith("driver.") for name, text in sources.items()}
            return build_library(verilog, top, counts, level="-O1", coverage=True, **options)

        def closed(self):
            if self._handle:
                write = self._library.sim_coverage
                write.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
                write(self._handle, counting._file().encode())
            close(self)

        def built_player(_, manifest, sources, verilate, level):
            counts = {name: text.replace(_END, f'\n    }}\n    context.coveragep()->write(getenv("{PLAYED}"));\n}}\n')
                      for name, text in sources.items()}
            return build_library(manifest.verilog, manifest.top, counts, verilate=verilate, level="-O1", coverage=True,
                                 cache=files.cache("players"))

        def played(self, inputs):
            os.environ[PLAYED] = counting._file()
            return play(self, inputs)
        Device._built, Device.close, Player._built, Player.play = built, closed, built_player, played
        return self

    def __exit__(self, *_):
        Device._built, Device.close, Player._built, Player.play = self.kept
        os.environ.pop(PLAYED, None)
