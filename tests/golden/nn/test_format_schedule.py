"""Formats by epoch and layer."""

import re

import pytest
import torch

import golden.nn as gn
from golden.formats.names import words


def test_every_epoch_and_layer():
    net = gn.convert(torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4))), "mxfp4")
    schedule, seen = gn.FormatSchedule(base="mxfp4", boosted="hbfp8", epochs=3), []
    for epoch in range(3):
        schedule.apply(gn.hbfp_layers(net), epoch)
        seen.append([words(layer.formats.w) for layer in net])
    assert seen == [["hbfp8 (1, 32)", "mxfp4", "mxfp4", "hbfp8 (1, 32)"]] * 2 + [["hbfp8 (1, 32)"] * 4]
    gn.FormatSchedule(base="mxfp4", boosted="mxfp8", epochs=2, last_epochs=0, ends=False).apply(list(net), 1)
    assert {words(layer.formats.w) for layer in net} == {"mxfp4"}


def test_what_lies_inside_is_a_part():
    net = gn.convert(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.MultiheadAttention(8, 2),
                                         torch.nn.Linear(8, 8)), "mxfp4")
    gn.FormatSchedule(base="mxfp4", boosted="mxfp8", epochs=2).apply(gn.hbfp_layers(net), 0)
    found = [words(layer.formats.x) for _, layer in gn.hbfp_layers(net)]
    assert found == ["mxfp8-e4m3", "mxfp4", "mxfp4", "mxfp8-e4m3"]         # attention, and its output projection


def test_widths_are_those_of_mixed_mantissa():
    ours = gn.FormatSchedule(base="hbfp4", boosted="hbfp6", epochs=5, last_epochs=2)
    other = gn.MixedMantissa(base=4, boosted=6, epochs=5, last_epochs=2)
    assert all(ours.format(layer, 4, epoch).x.mantissa == other.mantissa(layer, 4, epoch)
               for layer in range(4) for epoch in range(5))


@pytest.mark.parametrize("options, message", [
    ({"base": "mxfp5"}, "Name of a format must be"), ({"epochs": 0}, "Epochs must be 1 to 1000000, not 0"),
    ({"last_epochs": 3}, "Last epochs must be 0 to 2, not 3")])
def test_wrong_options(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        gn.FormatSchedule(**{"base": "mxfp4", "boosted": "mxfp8", "epochs": 2} | options)
