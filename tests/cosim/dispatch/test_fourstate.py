"""The dispatcher in a four-state simulator: nothing undefined reaches an output after reset, and all is its twin's."""

import pytest

from cosim.dispatch.check import SMALL, cases, differences, ports_in, ports_out, record, words
from cosim.manifest import Manifest
from hbfp import generator
from tests.cosim.fourstate_player import FourStatePlayer

pytestmark = pytest.mark.cosim
#: One with all kinds of faults, and resets in between; counters are read from the first cycle on.
CASE = next(case for case in cases(8) if case.faults)


def undefined(player, wanted):
    """Ports that are undefined in cycles in which they are looked at."""
    return [name for name, (cycles, _) in wanted.items() if player.undefined[name][cycles].any()]


def played(folder, change=lambda text: text):
    """The inputs of the case, what must come out of it, and the player that has played it."""
    inputs, outputs, _ = record(CASE)
    manifest = Manifest.load(generator.emitted("dispatch", words(SMALL)))
    player = FourStatePlayer(manifest, folder, change)
    player.play(ports_in(SMALL, inputs))
    return inputs, ports_out(SMALL, outputs), player


def test_nothing_is_undefined_and_all_is_the_twins(tmp_path):
    inputs, wanted, player = played(tmp_path)
    found = player.shown
    assert undefined(player, wanted) == [] and differences(found, wanted) == []
    assert len(inputs) > 1000 and found["o_completion__valid"].sum() > 5 and found["o_counter__valid"].sum() > 5


def test_a_register_without_reset_is_seen(tmp_path):
    _, wanted, player = played(tmp_path, lambda text: text.replace("if (rst) ", "if (1'h0) "))
    assert {"i_request__ready", "now", "error"} <= set(undefined(player, wanted))
