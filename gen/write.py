"""Files of what is emitted: Verilog, manifest, lists and what goes beside them; all of them or none."""

import os
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hbfp.design import Design
from hbfp.files import replacing
from hbfp.manifest import FILE, Manifest
from hbfp.rtl.lib.component import Component
from hbfp.values import cannot, refuse

from . import memory_list, sdc
from .blackbox import without_bodies
from .emit import Emitter, verilog
from .manifest import manifest, memories
from .readable import DEFAULT


def write_files(folder: str | os.PathLike[str], texts: Mapping[str, str]) -> None:
    """Write ``texts``, name -> text, into ``folder``: all of them or none.

    Raises
    ------
    OptionError
        If the folder cannot be made or written.
    """
    folder, made = Path(folder), []
    try:
        made = [parent for parent in [folder, *folder.parents] if not parent.exists()]
        with ExitStack() as stack:
            for name, text in texts.items():
                stack.enter_context(replacing(folder / name)).write_text(text)
    except BaseException as error:
        for parent in made:
            if parent.is_dir() and not any(parent.iterdir()):
                parent.rmdir()
        if not isinstance(error, OSError):
            raise
        raise cannot("written", "out", folder, error.strerror or str(error)) from None


def texts(component: Component, design: Design | None = None, blackbox: bool = False,
          beside: Mapping[str, str] | None = None, period: float | None = None, style: str = DEFAULT,
          **more: Any) -> tuple[Manifest, dict[str, str]]:
    """Convert a component: the manifest, with ``more`` of its fields, and its files, name -> text, the Verilog first.

    With ``blackbox`` memories have no bodies, and the manifest lists them. Where there are memories, files beside the
    Verilog list them (:mod:`gen.memory_list`). ``beside`` are further files, name -> text.
    ``period`` in ns asks for constraints of the clock; ``style`` is one of :data:`gen.readable.TEXTS`.

    Raises
    ------
    OptionError
        If there is no clock to constrain.
    """
    emitter = Emitter()
    top = emitter.convert(component)
    text = verilog(emitter, style)
    lists = memory_list.files(text, top, emitter.cells)
    found = memories(emitter, top)
    if blackbox:
        text = without_bodies(text, found)
    if blackbox or "accelerator" in more:
        more["memories"] = found
    files = {**(beside or {}), **lists}
    if period is not None:
        more["constraints"] = sdc.facts(text, top, period)
        if more["constraints"] is None:
            raise refuse("period", f"{period:g}", f"must not be given, {top} has no clock")
        files[more["constraints"]["file"]] = sdc.constraints(text, top, more["constraints"])
    found = manifest(emitter, top, text, design, **more)
    return found, {found.verilog: text, FILE: found.text(), **files}
