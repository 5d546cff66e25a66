"""Times of batches and quanta, kept: whoever asks again for the same networks waits for the simulation alone.

An entry has the files that were read while networks became programs, with what was in them: our own and installed
packages stand in its name, all others in the entry. What follows from none of these, such as a variable of the
environment that a network's file looks at, is not seen.
"""

import hashlib
import json
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbfp import files, generator
from hbfp.checkout import folder
from hbfp.system import Accelerator

from .dispatched import Quanta
from .plan import Plan, behind
from .shift import Shift, arriving

#: Files that were opened to be read, where somebody wants to know; empty until somebody has wanted to.
_watching: list[set[str] | None] = []


def shifts(words: Sequence[object], make: Callable[[], list[Shift]]) -> list[dict[str, Any]]:
    """What :func:`shift` takes for each of the shifts that ``make`` gives; from the cache, if ``words``, all code, and
    all files that were read then are the same.
    """
    path = files.cache("colocate") / f"{files.key(*words, _code())}.json"
    if path.is_file():
        kept = json.loads(path.read_text())
        if all(_digest(name) == digest for name, digest in kept["read"].items()):
            return list(kept["shifts"])
    with _watched() as read:
        found = [_plain(each) for each in make()]
    files.write_json(path, {"read": {name: _digest(name) for name in sorted(read)}, "shifts": found})
    return found


def shift(kept: dict[str, Any], accelerator: Accelerator, *, load: float, requests: int, seed: int, arrivals: str,
          times: NDArray[np.float64] | None, timeout: float, patience: float) -> Shift:
    """A shift from what is kept of one; the others as of :meth:`.shift.Shift.of`."""
    service, batch, quanta = kept["service"], kept["batch"], None
    if kept["pieces"]:
        quanta = Quanta(*(np.array(kept[name], np.int64) for name in ("on", "anew")))
    unit, policy = behind(accelerator, service, quanta, batch=batch, timeout=timeout, patience=patience)
    plan = Plan(unit, policy, service, np.array(kept["pieces"], np.int64), quanta, None)
    return Shift(plan, arriving(arrivals, requests, load * batch / service, seed, times), kept["alone"],
                 tuple(kept["limits"]))


def _plain(made):
    """What is kept of a shift: all that does not follow from when requests come, and from the policy."""
    plan = made.plan
    on, anew = ([], []) if plan.quanta is None else (plan.quanta.on.tolist(), plan.quanta.anew.tolist())
    return {"batch": plan.policy.batch, "service": plan.service, "pieces": plan.pieces.tolist(), "on": on,
            "anew": anew, "alone": made.alone, "limits": made.limits}


def _code():
    """What stands for all code that is ours or installed."""
    golden = folder("hbfp.golden")
    installed = sorted(name for place in _installed() if os.path.isdir(place) for name in os.listdir(place)
                       if name.endswith(".dist-info"))
    return files.key(generator.key(), *installed, *(part for path in sorted(golden.rglob("*.py"))
                                                    for part in (path.relative_to(golden), path.read_bytes())))


def _installed():
    """Folders of packages."""
    return [*site.getsitepackages(), site.getusersitepackages()]


@contextmanager
def _watched() -> Iterator[set[str]]:
    """The files that are opened to be read in the block, but those of Python, of packages and of ours."""
    seen, found = set[str](), set[str]()
    if not _watching:
        sys.addaudithook(_look)    # which stays for good
    _watching[:] = [seen]
    try:
        yield found
    finally:
        _watching[:] = [None]
    python = sysconfig.get_paths()
    apart = tuple(os.path.join(os.path.realpath(place), "") for place in (
        "/proc", "/sys", "/dev", files.build(), python["stdlib"], python["platstdlib"], *_installed(),
        *map(folder, ("hbfp", "hbfp.golden", "hbfp.gen", "hbfp.rtl"))))
    found |= {name for name in map(_source, seen) if not name.startswith(apart)}


def _look(event, args):
    """An event of Python's, of which those are kept that read a file."""
    seen, = _watching
    if seen is not None and event == "open" and isinstance(args[0], (str, bytes)) and not (
            args[2] & (os.O_WRONLY | os.O_RDWR)):
        seen.add(os.path.abspath(os.fsdecode(args[0])))


def _source(name):
    """The whole path of a file, or of what it was compiled from."""
    place, file = os.path.split(os.path.realpath(name))
    if os.path.basename(place) != "__pycache__":
        return os.path.join(place, file)
    return os.path.join(os.path.dirname(place), f"{file.partition(f'.{sys.implementation.cache_tag}')[0]}.py")


def _digest(name):
    """What stands for what is in a file; None if it cannot be read, as one that was sought in vain."""
    try:
        with open(name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
