"""Traces: spans of units, of their waits and of layers, as the viewers' format has them."""

import json

from golden.perf.accelerator.chrome import trace, write

from .example import PROGRAM, TIMES


def test_spans():
    spans = [each for each in trace(PROGRAM, TIMES)["traceEvents"] if each["ph"] == "X"]
    found = {(each["tid"], each["name"], each["ts"], each["dur"]) for each in spans}
    # The product of layer one, its wait; the NOP takes no time, and waited; a store.
    assert {(0, "one", 0, 70), (0, "two", 70, 30), (10, "one load", 10, 9), (10, "one load", 20, 18),
            (50, "one multiply", 40, 30), (51, "one multiply", 25, 15), (21, "two nop", 40, 30),
            (20, "two store", 71, 24)} == found
    load = next(each for each in spans if each["args"].get("instruction") == 0)
    assert load["args"] == {"instruction": 0, "completed": 19, "waits": [], "bytes": 64}


def test_file(tmp_path):
    data = json.loads(write(tmp_path / "trace.json", PROGRAM, TIMES).read_text())
    names = [each["args"]["name"] for each in data["traceEvents"] if each["name"] == "thread_name"]
    assert names[:3] == ["layers", "load", "load waits"] and len(names) == 15
