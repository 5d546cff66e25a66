"""Figures from the reports of commands that measure: what ``python -m flow figures --measure NAME`` keeps of each.

A reader takes the JSON of a command's report. It gives rows as the file of figures has them; texts of a row, such as
its title, are no measurement and stay as they were.
"""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from hbfp import figures, files

#: Significant digits that are kept: enough that what a page rounds is not rounded twice.
DIGITS = 8


@dataclass(frozen=True)
class Reader:
    """Of one file of figures: the report that its command writes, and how figures are read from it."""
    report: str
    read: Callable
    option: str = "--out"    # names the report's folder, or, if it is --json, the report itself


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
    """Of ``sweep.json``: cores beside the smallest lean FP32 core, the one in their own group, and the integer core."""
    cores, floats, integers = {}, {}, {}
    for study in data["studies"]:
        own, smallest = study["ratios"], study["smallest_ratios"]
        name, design = core_name(study["report"]["design"]), study["report"]["design"]
        cores[name] = scopes(study["report"]) | {
            "fp32": smallest["fp32"]["core"], "fp32_same_group": own["fp32"]["core"],
            "integer": 1 / own["int"]["core"] if "int" in own and design["sparse"] == [1, 1] else None,
            "fp32_side": smallest["fp32"]["core and side"], "fp32_memories": smallest["fp32"]["core and memories"],
            "fp32_everything": smallest["fp32"]["everything"]}
        floats = {kind: scopes(data["baselines"][key]) for kind, key in study["smallest"].items() if kind != "int"}
        floats["fp32_8x4"] = scopes(data["baselines"][study["baselines"]["fp32"]])
        for key in study["baselines"].values():
            report = data["baselines"][key]
            if report["design"]["arithmetic"] == "int":
                integers[core_name(report["design"])] = {"core": report["scopes"]["core"]}
    return {"cores": cores, "floats": floats, "integers": integers}


def accelerator(data):
    """Of ``accelerator.json``: logic, flip-flops and memories of each component."""
    keys = ("logic", "share", "flipflops", "bits", "memories")
    components = {"_".join(re.findall(r"\w+", part["name"])): {key: part[key] for key in keys}
                  for part in data["components"]}
    return {"components": components, "all": {name: data[name] for name in ("logic", "bits", "memories")}}


def denominators(data):
    """Of ``denominators.json``: floats by group with recoded products, and the smallest FP32 core with ``*``."""
    groups, (found, *_) = {}, data["denominators"]
    for each in found["floats"]:
        if each["multiplier"] == "recoded":
            groups.setdefault("g{}x{}".format(*each["group"]), {})[each["arithmetic"]] = each["core_nand2"]
    plain = [each for each in found["floats"] if (each["multiplier"], each["arithmetic"]) == ("plain", "fp32")]
    return {"groups": groups, "plain_fp32": min(each["core_nand2"] for each in plain)}


def silicon(data):
    """Of ``python -m golden silicon --json``: trainings that are the same for all networks are one row."""
    rows = {}
    for each in data:
        network = each["network"].lower().replace("-", "") if each["ends"] else "any"
        own = each["area_time"]["HBFP4 --wide 6"]
        rows.setdefault(f"{network}_{each['epochs']}", {
            "ends": 6 if each["ends"] else 4, "epochs": each["epochs"], "wide": 100 * each["wide"], "area_time": own,
            **{name.lower(): each["area_time"][name] / own for name in ("HBFP6", "HBFP8", "BF16", "FP32")}})
    return {"trainings": rows}


READERS = {"area": Reader("sweep.json", area), "accelerator": Reader("accelerator.json", accelerator),
           "denominators": Reader("denominators.json", denominators),
           "silicon": Reader("silicon.json", silicon, "--json")}


def merged(old, new):
    """New figures in the order and with the texts of the old ones; what was not measured now is gone."""
    if not isinstance(new, dict):
        return float(f"{new:.{DIGITS}g}") if isinstance(new, float) else new
    old = old if isinstance(old, dict) else {}
    keys = [key for key in old if key in new or isinstance(old[key], str)]
    return {key: merged(old.get(key), new[key]) if key in new else old[key]
            for key in keys + [key for key in new if key not in keys]}


def tools_of(data):
    """Library and versions of the tools that a report names, wherever it does: (name or None, versions)."""
    if isinstance(data, dict):
        if isinstance(data.get("tools"), dict):
            library = data.get("library")
            return library["name"] if isinstance(library, dict) else library, data["tools"]
        data = list(data.values())
    found = map(tools_of, data) if isinstance(data, list) else ()
    return next((each for each in found if each), None)


def measure(name, run, commit):
    """Measure again: the file's own command, told where its report goes, and the file written anew.

    Parameters
    ----------
    name : str
        One of :data:`READERS`.
    run : callable
        Called with the words behind ``python -m``; returns when the command has ended well.
    commit : str
        What is measured.
    """
    about, reader = figures.load(name), READERS[name]
    folder = files.output("figures", name)
    folder.mkdir(parents=True, exist_ok=True)
    run([*shlex.split(about["command"])[2:], reader.option,
         str(folder / reader.report if reader.option == "--json" else folder)])
    data = json.loads((folder / reader.report).read_text())
    library, tools = tools_of(data) or (about["library"], about["tools"])
    files.write(figures.FOLDER / f"{name}.json", figures.text(about | {
        "commit": commit, "library": library, "tools": tools, "figures": merged(about["figures"], reader.read(data))}))
    figures.load.cache_clear()
