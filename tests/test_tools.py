"""The set-up of the tests: a missing simulator is installed where that may be done, else one line names its package."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "test-tools"
INSTALLING = "installing iverilog, the four-state simulator of the tests\n"
MISSING = "missing: iverilog; install it with: apt-get install iverilog\n"


@pytest.mark.parametrize("programs, status, said, called", [
    ({"iverilog": "exit 0"}, 0, "", None),
    ({"id": "echo 0"}, 1, MISSING, None),
    ({"id": "echo 1000", "apt-get": "exit 0"}, 1, MISSING, None),
    ({"id": "echo 0", "apt-get": "exit 100"}, 1, INSTALLING + MISSING, None),
    ({"id": "echo 0", "apt-get": 'echo "$*" >> {folder}/called'}, 0, INSTALLING,
     "-qq update\n-qq install --yes --no-install-recommends iverilog\n"),
], ids=["there", "no apt-get", "not root", "apt-get fails", "installed"])
def test_the_simulator_of_the_tests(tmp_path, programs, status, said, called):
    for name, line in programs.items():
        path = tmp_path / name
        path.write_text(f"#!{shutil.which('sh')}\n{line.format(folder=tmp_path)}\n")
        path.chmod(0o755)
    done = subprocess.run([shutil.which("sh"), SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (status, said)
    assert not called or (tmp_path / "called").read_text() == called
