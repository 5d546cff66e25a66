"""The command line of runs of networks: what is refused, before anything long begins."""

import pytest

from cosim.__main__ import main


@pytest.mark.parametrize("words, message", [
    (["x", "--check", "all"], "--check all: must be one of outputs, layers"),
    (["x", "--latency", "0"], "--latency 0: must be 1 to 100000"),
    (["x", "--bandwidth", "5000"], "--bandwidth 5000: must be 1 to 4096"),
    (["x", "--rows", "12", "--cols", "12"], "--rows 12: must be one of 4, 8, 16, 32, 64, 128, 256 in an accelerator"),
    (["x", "--v-words", "96"], "--v-words 96: must be a power of two"),
    (["x", "--trace", "/no/such/folder/file"],
     "--trace /no/such/folder/file: cannot be written (No such file or directory)")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["run", *words])
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim run: error: {message}\n"
