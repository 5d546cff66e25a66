"""One network serves, another trains, by their files."""

import json

import pytest

from cosim.__main__ import main
from golden.__main__ import main as golden


def test_command(tmp_path, capsys):
    serve, train, names = tmp_path / "serve.py", tmp_path / "train.py", ("json", "timeline", "trace")
    serve.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(12, 5)\n\n\ndef inputs():\n"
                     "    return (torch.ones(4, 12),)\n\n\ndef requests():\n    return (torch.randn(7, 12),)\n")
    train.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(6, 4)\n\n\n"
                     "loss = torch.nn.functional.mse_loss\n\n\ndef batches():\n"
                     "    return [((torch.ones(4, 6),), (torch.ones(4, 4),))]\n\n\n"
                     "def optimiser(parameters):\n    return torch.optim.SGD(parameters, lr=0.1)\n")
    words = ["colocate", str(serve), str(train), "--machine", "--quiet", "--rows", "8", "--cols", "8", "--block", "1,8",
             "--requests", "20", "--quantum", "1"]
    for name in names:
        words += [f"--{name}", str(tmp_path / name)]
    assert main(words) == 0
    found = json.loads((tmp_path / "json").read_text())
    assert found["answers"]["compared"] == 100 and not found["answers"]["mismatches"] and found["passed"]
    assert found["weights"]["compared"] and not found["weights"]["mismatches"] and found["steps"] > 0
    assert found["p50"] <= found["p99"] <= found["max"] <= found["bound"] and found["idle"] > 0
    assert found["simulated"] == {name: found[name] for name in ("p50", "p99", "max")}
    events = json.loads((tmp_path / "trace").read_text())["traceEvents"]
    assert sum(each["ph"] == "b" for each in events) == 20 == sum(each["ph"] == "e" for each in events)
    assert (tmp_path / "timeline").read_bytes()[:4] == b"\x89PNG"
    assert "20 requests" in capsys.readouterr().out
    # The models alone have the same law, for as many requests as one likes.
    words.remove("--machine"), words.remove("--quiet")
    assert golden([*words[:words.index("--json")], "--json", str(tmp_path / "alone")]) == 0
    alone = json.loads((tmp_path / "alone").read_text())
    names = ("service", "quantum", "step", "batches", "p50", "p99", "max", "bound", "cycles", "idle", "of_idle",
             "of_allowed", "fill")
    assert {name: alone[name] for name in names} == {name: found[name] for name in names}


@pytest.mark.parametrize(("text", "line"), [
    ("def requests():\n    return (torch.ones(3, 11),)\n", "must give a tuple of tensors like those of inputs()"),
    ("def requests():\n    return 1 / 0\n", "ZeroDivisionError")])
def test_requests_of_a_file(tmp_path, capsys, text, line):
    serve = tmp_path / "serve.py"
    serve.write_text("import torch\n\n\ndef model():\n    return torch.nn.Linear(12, 5)\n\n\ndef inputs():\n"
                     f"    return (torch.ones(4, 12),)\n\n\n{text}")
    with pytest.raises(SystemExit) as ended:
        main(["colocate", str(serve), "none", "--machine", "--rows", "8", "--quiet"])
    assert ended.value.code == 2 and line in capsys.readouterr().err
