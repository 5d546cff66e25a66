"""What GTKWave and Surfer show of a dump at first: signals by unit, and states by their names.

``run.vcd`` gets ``run.gtkw`` and ``run.sucl`` beside it. A list of what the numbers of a state mean is one text for
both: a number and a name on each line, in ``.surfer/mappings``, where Surfer looks in the folder that it is started in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vcd.gtkw import GTKWSave
from vcd.reader import ScopeDecl, TokenKind, VarDecl, tokenize

from hbfp.files import replacing
from hbfp.hierarchy import modules

from ..manifest import Manifest

#: Group of the top's clock, reset and so on; bus of a port.
_TOP, _BUS = "top", re.compile(r"([ms]_axil?)_|(\w+?)__")
#: Ports that each unit has and none needs to show.
_EVERYWHERE = {"clk", "rst", "aclk", "aresetn"}


@dataclass(frozen=True)
class Shown:
    """A signal: its path in the dump, its range there (empty: one bit), and what its numbers mean, of a state."""
    path: str
    range: str
    states: dict[int, str]


def signals(dump: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """The signals of a VCD file by their scope: name -> range, such as ``[7:0]``, or none for one bit."""
    found: dict[tuple[str, ...], dict[str, str]] = {}
    scope: tuple[str, ...] = ()
    with open(dump, "rb") as file:
        for token in tokenize(file):
            if token.kind is TokenKind.ENDDEFINITIONS:
                break
            if isinstance(data := token.data, ScopeDecl):
                scope = *scope, data.ident
            elif token.kind is TokenKind.UPSCOPE:
                scope = scope[:-1]
            elif isinstance(data, VarDecl):
                found.setdefault(scope, {})[data.reference] = data.ref_str.removeprefix(data.reference)
    return found


def groups(manifest: Manifest, dump: Path) -> dict[str, list[Shown]]:
    """What is shown: the top's ports by bus, then the ports and all states of each unit, in the order of the Verilog.

    Parameters
    ----------
    manifest : Manifest
        Of the design in the dump.
    dump : Path
        The VCD file.

    Returns
    -------
    dict of str to list of Shown
        By the name of the group; all of them are in the dump.
    """
    bodies, known = modules(manifest.verilog.read_text()), signals(dump)
    root = next(scope for scope in known if scope and scope[-1] == manifest.top)

    def shown(scope, names, states):
        there = known.get(scope, {})
        return [Shown(".".join((*scope, name)), there[name], states.get(name, {})) for name in names if name in there]

    def below(scope, module) -> Iterator[Shown]:
        if module in bodies:
            yield from shown(scope, bodies[module].states, bodies[module].states)
            for part, each in bodies[module].parts.items():
                yield from below((*scope, part), each)

    top = bodies[manifest.top]
    found: dict[str, list[Shown]] = {_TOP: []}
    for each in shown(root, top.ports, top.states):
        bus = _BUS.match(each.path.rsplit(".", 1)[1])
        found.setdefault((bus[1] or bus[2]) if bus else _TOP, []).append(each)
    found[_TOP] += [each for each in shown(root, top.states, top.states) if each not in found[_TOP]]
    for part, module in top.parts.items():
        if module in bodies:
            ports = [name for name in bodies[module].ports if name not in _EVERYWHERE]
            rows = shown((*root, part), ports, bodies[module].states)
            found[part] = [*rows, *(each for each in below((*root, part), module) if each not in rows)]
    return {name: rows for name, rows in found.items() if rows}


def write_views(manifest: Manifest, dump: Path) -> list[Path]:
    """Write what the two viewers open beside a VCD file.

    Parameters
    ----------
    manifest, dump
        As of :func:`groups`.

    Returns
    -------
    list of Path
        GTKWave's file, and Surfer's.
    """
    dump = Path(dump).resolve()
    found, named = groups(manifest, dump), {}
    for each in (each for rows in found.values() for each in rows if each.states):
        file = dump.parent / ".surfer" / "mappings" / f"{dump.stem}_{_below(each, manifest)}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        high = int((re.search(r"\d+", each.range) or ["0"])[0])
        with replacing(file) as temporary:
            temporary.write_text("".join([f"Bits = {high + 1}\n", *(f"{number} {name}\n" for number, name in
                                                                     sorted(each.states.items()))]))
        named[each.path] = file
    views = [dump.with_suffix(".gtkw"), dump.with_suffix(".sucl")]
    with replacing(views[0]) as temporary, open(temporary, "w") as out:
        _gtkwave(GTKWSave(out), dump, found, named)
    with replacing(views[1]) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in _surfer(found, named)))
    return views


def _below(each, manifest):
    """A signal's path below the top as one word."""
    return re.sub(r"\W+", "_", each.path.split(f"{manifest.top}.", 1)[1])


def _gtkwave(save, dump, found, named):
    """GTKWave's save file; only the top's group is open."""
    save.dumpfile(str(dump))
    save.timestart(0)
    for group, rows in found.items():
        with save.group(group, closed=group != _TOP):
            for each in rows:
                file = named.get(each.path)
                save.trace(each.path + each.range, datafmt="dec" if file else "hex",
                           translate_filter_file=str(file) if file else None)


def _surfer(found, named):
    """Surfer's commands. It has words for the lines on its screen, counted from 0: hexadecimal digits as a to p."""
    line = 0
    for group, rows in found.items():
        yield f"divider_add {group}"
        line += 1
        for each in rows:
            yield f"variable_add {each.path}"
            if each.path in named:
                word = "".join("abcdefghijklmnop"[int(digit, 16)] for digit in f"{line:x}")
                yield f"item_focus {word}_{each.path}"
                yield f"item_set_format {named[each.path].stem}"
                yield "item_unfocus"
            line += 1
