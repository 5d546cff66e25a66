"""Proves that two checkouts generate the same logic: ``python -m benchmarks.same_logic BEFORE [AFTER]``.

``--text`` proves instead that the readable and the plain text of each design are the same, module by module: one
inside another is a cell whose function is its name.

For a list of designs both write their Verilog, which may differ in names, comments, order and initial values, in
nothing else. Yosys reads and flattens each; then cells of both are put into classes: of one class are cells of one
function whose inputs come, bit by bit, from cells of one class. This is refined until it is stable. If every output
of the top module then has the same class on either side, both give the same values in every cycle, started from the
same values: registers of one class start equal, get equal inputs and so stay equal. Nothing is matched by name but
the ports of the top module, and nothing is left to a solver.

Two levels are tried: words as they are written, then gates, where other ways to write the same expression disappear.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from synth.tools.errors import SynthError
from synth.tools.yosys import run

#: Designs that between them have every part, option and kind of arithmetic: options of ``python -m gen``.
DESIGNS = [words.split() for words in (
    "--rows 4 --block 1,4 --depth 8",
    "--rows 1 --block 1,1 --depth 1 --exponent 16",
    "--rows 3 --cols 2 --block 8,8 --ragged --depth 4 --exponent 6",
    "--rows 8 --cols 2 --block 1,2 --mantissa 4 --depth 8 --exponent 8",
    "--rows 5 --cols 2 --block 1,2 --ragged --group 1,1 --depth 4",
    "--rows 4 --cols 2 --block 16,16 --accumulate aligned --depth 8",
    "--rows 6 --cols 3 --block 1,3 --accumulate aligned --mantissa 2 --exponent 5 --depth 8 --guard 5 --growth 3",
    "--rows 4 --cols 2 --block 1,8 --rounding stochastic --mantissa 16 --exponent 16 --depth 8",
    "--rows 2 --block 1,2 --rounding truncate --mantissa 2 --depth 8",
    "--rows 2 --cols 4 --block 1,8 --share 4 --group 2,2 --depth 8",
    "--rows 2 --cols 2 --block 1,4 --share 2 --accumulate aligned --depth 8",
    "--rows 4 --block 1,2 --mantissa 5 --group 1,2 --multiplier recoded --depth 8",
    "--rows 4 --block 1,4 --pipeline 2 --depth 8",
    "--rows 4 --cols 2 --arithmetic fp32 --depth 8",
    "--rows 4 --cols 2 --arithmetic fp32 --multiplier recoded --depth 8",
    "--rows 4 --cols 2 --arithmetic fma --pipeline 3 --depth 8",
    "--rows 2 --cols 4 --arithmetic bf16 --depth 8",
    "--rows 4 --cols 2 --arithmetic int --mantissa 4 --depth 8",
    "--rows 4 --cols 2 --arithmetic int --mantissa 8 --growth 0 --multiplier recoded --depth 8",
    "--unit dot_product --block 1,8 --mantissa 4",
    "--unit dot_product --block 1,4 --arithmetic fp32",
    "--unit fp32.fma --pipeline 3",
    "--unit fp32.div --pipeline 2 --subnormals flush",
    "--unit fp32.gelu",
    "--unit vector --lanes 2 --beats 4 --registers 2",
    "--unit vector.hbfp --rows 4 --block 1,4",
    "--unit dispatch",
    "--unit butterfly --pods 8 --copies 2",
    "--unit crossbar --pods 8",
    "--unit benes --pods 8",
    "--top accelerator --rows 8 --block 1,8 --x-words 64 --w-words 64 --v-words 64 --p-words 32",
    "--top accelerator --rows 8 --block 1,8 --x-words 128 --w-words 128 --v-words 128 --p-words 64 --contexts 2",
    "--top accelerator --rows 8 --block 1,8 --pipeline 3",
    "--top pods --pods 4 --rows 4 --block 1,4 --bank 64 --rounds 64",
)]
_READ = ("read_verilog {file}; hierarchy -check -top {top}; proc; setattr -unset init w:*; {flatten}"
         "delete t:$meminit t:$meminit_v2; opt_expr; memory_collect; opt_clean -purge; rename -top top; ")
#: Level -> what follows the reading.
LEVELS = {
    "words": "simplemap; opt_expr; opt_clean -purge; ",
    "gates": "opt_merge; pmuxtree; simplemap; techmap; opt_expr -full; aigmap; opt_expr; opt_merge; opt_clean -purge; ",
}
#: Cells whose outputs depend on a state: classes of their inputs count one round later.
_STATE = ("$mem", "$_DFF", "$_SDFF", "$_DFFE", "$_SDFFE", "$_SDFFCE", "$_FF_", "$dff", "$sdff")
#: Parameters that are names or initial values.
_NAMES = {"MEMID", "INIT", "RD_INIT_VALUE"}
#: Cells whose two inputs may change places, if they are alike.
_COMMUTATIVE = {"$_AND_", "$_OR_", "$_XOR_", "$_XNOR_", "$_NAND_", "$_NOR_", "$add", "$mul", "$eq", "$ne"}


class Netlist:
    """A module from Yosys's JSON: cells in an order in which, states aside, each comes after its inputs.

    Modules inside it are states, too: what they do with their inputs is not known here.

    Attributes
    ----------
    cells : list of (kind, [(input port, bits)], whether it is a state)
        ``kind`` is the cell's function: type and parameters.
    source : dict
        Bit -> (cell index, output port, place), or (name, place) of an input of the module.
    inputs, outputs : dict
        Port of the module -> bits.
    """

    def __init__(self, module):
        ports = module["ports"].items()
        self.inputs = {name: port["bits"] for name, port in ports if port["direction"] == "input"}
        self.outputs = {name: port["bits"] for name, port in ports if port["direction"] == "output"}
        self.source = {bit: (name, n) for name, bits in self.inputs.items() for n, bit in enumerate(bits)}
        found, driver = [], {}
        for cell in module["cells"].values():
            parameters = tuple(sorted((key, value) for key, value in cell["parameters"].items() if key not in _NAMES))
            directions = cell["port_directions"]
            taken = [(port, bits) for port, bits in sorted(cell["connections"].items()) if directions[port] == "input"]
            given = {port: bits for port, bits in cell["connections"].items() if directions[port] == "output"}
            for port, bits in given.items():
                driver |= {bit: (len(found), port, n) for n, bit in enumerate(bits)}
            state = cell["type"].startswith(_STATE) or not cell["type"].startswith("$")
            found.append(((cell["type"], parameters), taken, state))
        order = self._order(found, driver)
        place = {old: new for new, old in enumerate(order)}
        self.cells = [found[n] for n in order]
        self.source |= {bit: (place[cell], port, n) for bit, (cell, port, n) in driver.items()}

    @staticmethod
    def _order(cells, driver):
        """Indices of cells: states first, then depth first from the inputs up."""
        order, seen = [n for n, cell in enumerate(cells) if cell[2]], {}
        seen = dict.fromkeys(order, True)
        for start in range(len(cells)):
            stack = [(start, None)] if start not in seen else []
            while stack:
                cell, waiting = stack.pop()
                if waiting is None:
                    if cell in seen:
                        continue
                    seen[cell] = False
                    waiting = iter({driver[bit][0] for _, bits in cells[cell][1] for bit in bits if bit in driver})
                for before in waiting:
                    if before not in seen:
                        stack += [(cell, waiting), (before, None)]
                        break
                    if not seen[before]:
                        raise ValueError(f"Combinational loop through a {cells[cell][0][0]}")
                else:
                    seen[cell] = True
                    order.append(cell)
        return order


def _class_of(bit, netlist, classes):
    """What is known of a bit: a constant, a bit of an input, or a bit of a cell of some class."""
    source = netlist.source.get(bit)
    if source is None:
        return bit if isinstance(bit, str) else "undriven"
    return (classes[source[0]], *source[1:]) if len(source) == 3 else source


def _key(kind, taken, netlist, classes):
    """A cell's function and the classes of its inputs; inputs that may change places come in one order."""
    inputs = [(port, tuple([_class_of(bit, netlist, classes) for bit in bits])) for port, bits in taken]
    parameters = dict(kind[1])
    if kind[0] in _COMMUTATIVE and [port for port, _ in inputs] == ["A", "B"] and all(
            parameters.get(f"A_{what}") == parameters.get(f"B_{what}") for what in ("WIDTH", "SIGNED")):
        inputs = sorted((part for _, part in inputs), key=repr)
    return kind, tuple(inputs)


def classes(netlists):
    """The stable classes of the cells of several netlists: one list of numbers for each."""
    states = {}    # key -> class, below zero so that it is no class of other cells
    found = [[states.setdefault(kind, -1 - len(states)) if state else None for kind, _, state in netlist.cells]
             for netlist in netlists]
    while True:
        others, finer, following = {}, {}, []
        for netlist, now in zip(netlists, found, strict=True):
            for n, (kind, taken, state) in enumerate(netlist.cells):
                if not state:
                    now[n] = others.setdefault(_key(kind, taken, netlist, now), len(others))
            following.append([finer.setdefault((now[n], _key(kind, taken, netlist, now)), -1 - len(finer))
                              if state else None for n, (kind, taken, state) in enumerate(netlist.cells)])
        if len(finer) == len(states):    # no class was split, so what was found is stable
            return found
        states, found = finer, following


def different(before, after):
    """What differs, in words: nothing if the two netlists are the same logic."""
    for what in ("inputs", "outputs"):
        shapes = [{name: len(bits) for name, bits in getattr(netlist, what).items()} for netlist in (before, after)]
        if shapes[0] != shapes[1]:
            names = sorted(name for name in {*shapes[0], *shapes[1]} if shapes[0].get(name) != shapes[1].get(name))
            return [f"{what}: {', '.join(names)}"]
    a, b = classes([before, after])
    found = [f"output {name}" for name, bits in before.outputs.items()
             if [_class_of(bit, before, a) for bit in bits]
             != [_class_of(bit, after, b) for bit in after.outputs[name]]]
    kinds = [Counter(cell[0][0] for cell in netlist.cells) for netlist in (before, after)]
    found += [f"{kind}: {kinds[0][kind]} before, {kinds[1][kind]} after"
              for kind in sorted({*kinds[0], *kinds[1]}) if kinds[0][kind] != kinds[1][kind]]
    return found or ["other cells beside the outputs"] * (Counter(a) != Counter(b))


def compare(before, after, folder, flat=True):
    """(level, cells, what differs) of two folders that ``python -m gen`` wrote; the last is empty if nothing does.

    Not ``flat``: modules of one name are compared, and what differs is said of each.
    """
    names, cells = "", 0
    for level, script in LEVELS.items():
        sides = []
        for side, written in (("before", before), ("after", after)):
            manifest = json.loads((written / "manifest.json").read_text())
            (folder / f"{side}.v").write_text((written / manifest["verilog"]).read_text())
            read = _READ.format(file=f"{side}.v", top=manifest["top"], flatten="flatten; " * flat)
            run(f"{read}select {names}; {script}select -clear; write_json {side}.json\n" if names else
                f"{read}{script}write_json {side}.json\n", folder)
            modules = json.loads((folder / f"{side}.json").read_text())["modules"]
            sides.append({name: Netlist(module) for name, module in modules.items()
                          if not module["attributes"].get("blackbox") and name in (names.split() or modules)})
        if sides[0].keys() != sides[1].keys():
            return level, cells, [f"modules: {', '.join(sorted(sides[0].keys() ^ sides[1].keys()))}"]
        found = {name: different(netlist, sides[1][name]) for name, netlist in sides[0].items()}
        cells = cells or sum(len(netlist.cells) for netlist in sides[0].values())
        names = " ".join(name for name, said in found.items() if said)
        if not names or level == list(LEVELS)[-1]:
            return level, cells, [each if flat else f"{name}: {each}" for name, said in found.items() for each in said]


def main():
    """Compare all designs; the exit status says whether all are the same."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.same_logic", description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, nargs="?", default=Path.cwd(), help="a checkout (default: here)")
    parser.add_argument("after", type=Path, nargs="?", default=Path.cwd(), help="another (default: here)")
    parser.add_argument("--text", action="store_true", help="the plain text before, the readable one after")
    parser.add_argument("--design", metavar="WORDS", help="only this one, options of python -m gen in one word")
    args = parser.parse_args()
    bad = 0
    for words in [args.design.split()] if args.design else DESIGNS:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            try:
                for side in ("before", "after"):
                    text = ["--text", "plain"] * (args.text and side == "before")
                    subprocess.run([sys.executable, "-m", "gen", *words, *text, "--out", folder / side],
                                   cwd=getattr(args, side), check=True, capture_output=True, text=True)
                level, cells, found = compare(folder / "before", folder / "after", folder, not args.text)
                said = f"DIFFERENT: {'; '.join(found)}" if found else f"same, {cells} {level}"
            except subprocess.CalledProcessError as error:
                found, said = True, f"not generated: {error.stderr.strip().splitlines()[-1]}"
            except SynthError as error:
                found, said = True, str(error)
        bad += bool(found)
        print(f"{' '.join(words)}: {said}", flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
