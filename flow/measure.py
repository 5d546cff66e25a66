"""Measured anew: ``python -m flow figures --measure NAME`` runs what a file of figures names, and keeps what it says.

The ``runs`` of a file are its commands and what their reports give, in data::

    {"command": "python -m synth --mantissa {w} {words} --against ''", "report": "synth.json",
     "for": {"row, words": [["blocks", ""], ["tiles", "--block 32,32"]], "w": [4, 8]},
     "figures": {"{row}.w{w}": "report.scopes.core"}}

``for`` has lists of what stands for the names in braces, all crossed; names with commas between go together.
``figures`` is address -> expression (:mod:`flow.pages`) whose names are looked up in the command's report, which is
``data`` as a whole, then in the files of figures. A report is the file like ``report`` in the folder that ``--out``
names, or what ``--json`` writes. Without a command the expressions are of the file's own figures. Reports with rows
without names have a ``reader`` instead, a function of :data:`READERS`, and the ``groups`` of figures that it gives.
Texts, such as titles, are no measurement and stay as they were, and so do figures that the file's ``kept`` says no
command gives, with the reason.
"""

import copy
import itertools
import json
import re
import shlex
import shutil
from fnmatch import fnmatchcase
from pathlib import PurePath

from hbfp import figures, files

from .pages import value

#: Significant digits that are kept: enough that what a page rounds is not rounded twice.
DIGITS = 8


def core_name(design):
    """The row of a core: its kind, then what it has beside the defaults, such as ``hbfp8_share4``."""
    kind, width = design["arithmetic"], design["format"]["mantissa"]
    words = [f"{kind}{width}" if kind in ("hbfp", "int") else kind]
    words += [f"wide{design['wide']}"] * (design["wide"] > 0) + ["sparse"] * (design["sparse"] != [1, 1])
    if design["format"]["block"][0] > 1:
        words.append("tiles")
    elif design["accumulate"] != "fp32":
        words.append(design["accumulate"])
    return "_".join(words + [f"share{design['share']}"] * (design["share"] > 1))


def scopes(report):
    """Areas of a report, NAND2-equivalents a multiply-accumulate."""
    found = report["scopes"]
    return {"element": found["element"], "core": found["core"], "side": found["core and side"]}


def area(data):
    """Figures of ``sweep.json``: cores beside the smallest lean FP32 core, that in their group, and integer cores."""
    cores, floats, integers = {}, {}, {}
    for study in data["studies"]:
        own, smallest = study["ratios"], study["smallest_ratios"]
        name, design = core_name(study["report"]["design"]), study["report"]["design"]
        price = "" if study["report"]["bit"] is None else "_bit"    # as macros, or for a bit
        cores[name] = scopes(study["report"]) | {
            "fp32": smallest["fp32"]["core"], "fp32_same_group": own["fp32"]["core"],
            "integer": 1 / own["int"]["core"] if "int" in own and design["sparse"] == [1, 1] else None,
            "fp32_side": smallest["fp32"]["core and side"],
            f"fp32_memories{price}": smallest["fp32"]["core and memories"],
            f"fp32_everything{price}": smallest["fp32"]["everything"]}
        floats = {kind: scopes(data["baselines"][key]) for kind, key in study["smallest"].items() if kind != "int"}
        floats["fp32_8x4"] = scopes(data["baselines"][study["baselines"]["fp32"]])
        for key in study["baselines"].values():
            report = data["baselines"][key]
            if report["design"]["arithmetic"] == "int":
                integers[core_name(report["design"])] = {"core": report["scopes"]["core"]}
    return {"cores": cores, "floats": floats, "integers": integers}


def denominators(data):
    """Figures of ``denominators.json``: floats by group, recoded, and the smallest FP32 core with plain multipliers."""
    groups, (found, *_) = {}, data["denominators"]
    for each in found["floats"]:
        if each["multiplier"] == "recoded":
            groups.setdefault("g{}x{}".format(*each["group"]), {})[each["arithmetic"]] = each["core_nand2"]
    plain = [each for each in found["floats"] if (each["multiplier"], each["arithmetic"]) == ("plain", "fp32")]
    return {"groups": groups, "plain_fp32": min(each["core_nand2"] for each in plain)}


def silicon(data):
    """Figures of ``python -m golden silicon --json``: trainings that are the same for all networks are one row."""
    rows = {}
    for each in data:
        network = each["network"].lower().replace("-", "") if each["ends"] else "any"
        own = each["area_time"]["HBFP4 --wide 6"]
        rows.setdefault(f"{network}_{each['epochs']}", {
            "ends": 6 if each["ends"] else 4, "epochs": each["epochs"], "wide": 100 * each["wide"], "area_time": own,
            **{name.lower(): each["area_time"][name] / own for name in ("HBFP6", "HBFP8", "BF16", "FP32")}})
    return {"trainings": rows}


def clocks(data):
    """Figures of ``clocks.json``: for each core of blocks the smallest float of each kind that meets its clock."""
    cores = {}
    for each in data["equal_clock"]:
        own = each["design"]
        if own["pipeline"] == 1:
            continue    # between the two that the table has
        name = f"hbfp{own['mantissa']}" + (f"_pipeline{own['pipeline']}" if own["pipeline"] else "")
        cores[name] = {"ns": own["period_ns"], "core": own["core_nand2"]}
        for kind in ("fp32", "bf16"):
            if other := each["against"][kind]["baseline"]:
                cores[name] |= {kind: other["core_nand2"], f"{kind}_ns": other["period_ns"]}
    return {"cores": cores}


def orthogonality(data):
    """Figures of ``errors.json``: a row for each format, the errors of each layer in percent."""
    formats, layers = {}, list(dict.fromkeys(each["layer"] for each in data))
    for each in data:
        row = formats.setdefault(each["format"], {})
        for case, error in each["outputs"].items():
            row[f"{case.replace('-', '_')}_{layers.index(each['layer']) + 1}"] = 100 * error
    return {"formats": formats}


def balance(data):
    """Figures of ``python -m golden balance --json``: a row for each accelerator on a front, and for each preset."""
    def row(each):
        return {"title": f"`{each['options']}`" if each["options"] else "the default", "all": each["all"],
                "logic": each["logic"], "memories": each["memories"],
                **{re.sub(r"\W", "_", PurePath(name).stem): each["cycles"][name] for name in data["networks"]}}

    points, places = data["points"], sorted({place for found in data["fronts"].values() for place in found})
    return {"front": {re.sub(r"\W+", "_", points[place]["options"]).strip("_") or "default": row(points[place])
                      for place in sorted(places, key=lambda place: points[place]["all"])},
            "presets": {name: row(points[found["point"]]) | {
                "title": f"`{name}`", "better": "none" if found["beaten"] is None else
                f"`{points[found['beaten']]['options']}`"} for name, found in data["presets"].items()}}


def groups(data):
    """Figures of a report that has them as the file has."""
    return data


READERS = {"area": area, "balance": balance, "clocks": clocks, "denominators": denominators, "groups": groups,
           "orthogonality": orthogonality, "silicon": silicon}


def merged(old, new):
    """New figures in the order and with the texts and gaps of the old ones; what was not measured now is gone."""
    if not isinstance(new, dict):
        return float(f"{new:.{DIGITS}g}") if isinstance(new, float) else new
    old = old if isinstance(old, dict) else {}
    keys = [key for key in old if key in new or old[key] is None or isinstance(old[key], str)]
    return {key: merged(old.get(key), new[key]) if key in new else old[key]
            for key in keys + [key for key in new if key not in keys]}


def joined(one, other):
    """Rows of two readings, a figure of the second before that of the first."""
    return one | {key: joined(one[key], inner) if isinstance(inner, dict) and key in one else inner
                  for key, inner in other.items()}


def tools_of(data):
    """Library and versions of the tools that a report names, wherever it does: (name or None, versions), or None."""
    if isinstance(data, dict):
        if isinstance(data.get("tools"), dict):
            library = data.get("library")
            return library["name"] if isinstance(library, dict) else library, data["tools"]
        data = list(data.values())
    found = map(tools_of, data) if isinstance(data, list) else ()
    return next((each for each in found if each), None)


def filled(run):
    """``(command or None, report, address -> expression)`` of a run, for everything that its names stand for."""
    axes = [[dict(zip(names.split(", "), each if ", " in names else [each], strict=True)) for each in values]
            for names, values in run.get("for", {}).items()]
    for chosen in itertools.product(*axes):
        names = {key: each for part in chosen for key, each in part.items()}
        yield (*(run[key].format(**names) if key in run else None for key in ("command", "report")),
               {address.format(**names): text.format(**names) for address, text in run.get("figures", {}).items()})


def commands(about):
    """The commands of a file of figures, each once."""
    return list(dict.fromkeys(command for run in about["runs"] for command, *_ in filled(run) if command))


def numbers(rows, address=""):
    """Address -> figure of everything in nested rows that is no text."""
    for key, inner in rows.items():
        if isinstance(inner, dict):
            yield from numbers(inner, f"{address}{key}.")
        elif not isinstance(inner, str):
            yield f"{address}{key}", inner


def unexplained(about):
    """Addresses of figures that no run gives and that are not kept, and of what is kept although a run gives it."""
    given = {address for run in about["runs"] for *_, found in filled(run) for address in found}
    whole = {group for run in about["runs"] if "reader" in run for group in run["groups"]}
    for address, figure in numbers(about["figures"]):
        kept = any(fnmatchcase(address, pattern) for pattern in about["kept"])
        run = address in given or address.partition(".")[0] in whole
        if run == kept and figure is not None:
            yield address


def put(figures_, address, figure):
    """Set a figure; rows that there are not yet begin where they are needed."""
    *keys, last = address.split(".")
    for key in keys:
        figures_ = figures_.setdefault(key, {})
    figures_[last] = merged(None, figure)


def reported(command, report, folder, call):
    """What a command's report says: the command is told where it goes, and called."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = ["--json", str(folder / "report.json")] if report is None else ["--out", str(folder)]
    call([*shlex.split(command)[2:], *words])
    path, = folder.glob(report or "report.json")
    return json.loads(path.read_text())


def measure(name, call, commit):
    """Measure again: the file's own commands, told where their reports go, and the file written anew.

    Parameters
    ----------
    name : str
        A file of figures that has runs.
    call : callable
        Called with the words behind ``python -m``; returns when the command has ended well.
    commit : str
        The commit that is measured.
    """
    about, place = figures.load(name), files.output("figures", name).resolve()
    found, reports, groups = copy.deepcopy(about["figures"]), {}, {}
    for run in about["runs"]:
        for command, report, texts in filled(run):
            if command and command not in reports:
                reports[command] = reported(command, report, place / str(len(reports)), call)
            data = reports[command] if command else found
            if "reader" in run:
                groups = joined(groups, READERS[run["reader"]](data))
                found |= {group: merged(about["figures"].get(group), groups[group]) for group in run["groups"]}
            names = (data if isinstance(data, dict) else {}) | {"data": data}
            for address, text in texts.items():
                put(found, address, value(text, names))
    library, tools = tools_of(list(reports.values())) or (about["library"], about["tools"])
    files.write(figures.FOLDER / f"{name}.json", figures.text(about | {
        "commit": commit, "library": library, "tools": tools, "figures": found}))
    figures.load.cache_clear()
