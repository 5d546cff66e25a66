"""Results by content: the same input is never worked out twice."""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

ROOT = Path("build/cache/synth")


def key(*parts):
    """A name for what ``parts``, strings or bytes, determine."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()[:32]


def folder(name, make):
    """The folder of that name; if it is not there, ``make(folder)`` fills it, all or nothing.

    A folder whose ``make`` fails stays as ``NAME.failed``, so that the log in the message can be read.
    """
    final = ROOT / name
    if final.exists():
        return final
    ROOT.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=ROOT, prefix=".new-"))
    failed = ROOT / f"{name}.failed"
    shutil.rmtree(failed, ignore_errors=True)
    try:
        make(temporary)
    except BaseException as error:
        os.replace(temporary, failed)
        error.args = tuple(arg.replace(str(temporary), str(failed)) if isinstance(arg, str) else arg
                           for arg in error.args)
        raise
    try:
        os.replace(temporary, final)
    except OSError:    # another process was quicker
        shutil.rmtree(temporary)
    return final


def value(name, make):
    """The JSON value of that name; if it is not there, that of ``make()``."""
    def fill(place):
        (place / "value.json").write_text(json.dumps(make()))
    return json.loads((folder(name, fill) / "value.json").read_text())
