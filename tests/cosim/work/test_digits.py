"""The digits network is trained once, and again if its file was harmed."""

import numpy as np

from cosim.work import digits
from golden.core.device import Layer


def test_harmed_network_is_trained_again(tmp_path, monkeypatch, capsys):
    def train(images, classes, progress=None):
        calls.append(len(images))
        return [Layer(np.full((k, n), 2, np.float32), np.zeros(n, np.float32), True)
                for k, n in zip(digits.SIZES, digits.SIZES[1:], strict=False)]

    calls = []
    monkeypatch.setenv("HBFP_BUILD", str(tmp_path))
    monkeypatch.setattr(digits, "load", lambda: (np.zeros((400, 64), np.float32), np.arange(400) % 10))
    monkeypatch.setattr(digits, "train", train)
    for harm in (None, b"", b"PK"):
        if harm is not None:
            (path,) = tmp_path.rglob("network.npz")
            path.write_bytes(harm)
        layers, images, classes = digits.prepare()
        assert [layer.weight.shape for layer in layers] == [(64, 256), (256, 128), (128, 10)]
        assert images.shape == (360, 64) and classes.shape == (360,)
    digits.prepare()
    assert calls == [40] * 3
    assert [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()] == [
        "network.npz is not as it was made; making it again"] * 2
