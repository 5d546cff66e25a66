"""The command line of the regression."""

import pytest

from cosim.command import matrix


@pytest.mark.parametrize("words, message", [
    (["--arrays", "2x2"], "--arrays 2x2: must be of 1x1, 3x5, 8x8, 16x16, 24x24"),
    (["--jobs", "0"], "--jobs 0: must be 1 to 4096")])
def test_wrong_option(words, message, capsys):
    with pytest.raises(SystemExit) as stop:
        matrix.main(words)
    assert stop.value.code == 2
    assert capsys.readouterr().err == f"python -m cosim matrix: error: {message}\n"
