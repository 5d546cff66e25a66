"""The option ``--machine``: what it cannot be given with."""

import pytest

from cosim.__main__ import main


@pytest.mark.parametrize("words", [["--latency", "8"], ["--bandwidth", "8"], ["--timeline", "a.png"],
                                   ["--beside", "mlp", "--contexts", "2"]])
def test_what_needs_cycles_is_refused(words, capsys):
    with pytest.raises(SystemExit):
        main(["run", "mlp", "--machine", *words])
    assert capsys.readouterr().err == (f"python -m cosim run: error: {words[0]} must not be given with --machine, "
                                       "which has no cycles\n")
