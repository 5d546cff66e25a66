"""Mixed mantissas: who is boosted when, and the share of the arithmetic.

Covers: golden/study/resnet.py, golden/study/shares.py, golden/study/text.py.
"""

import pytest

from golden.schedule import MixedMantissa, linear_macs, resnet20_macs, resnet50_macs


def test_who_is_boosted_when():
    schedule = MixedMantissa(epochs=3)
    assert [[schedule.mantissa(layer, 4, epoch) for layer in range(4)] for epoch in range(3)] == [
        [6, 4, 4, 6], [6, 4, 4, 6], [6, 6, 6, 6]]
    assert MixedMantissa(epochs=3, ends=False, last_epochs=2).mantissa(0, 4, 1) == 6
    assert MixedMantissa(epochs=3, ends=False, last_epochs=0).mantissa(0, 4, 2) == 4


@pytest.mark.parametrize("options, widths", [
    (dict(ends=False), ([4, 4, 4], [4, 4, 4], [6, 6, 6])),
    (dict(last_epochs=0), ([6, 4, 6], [6, 4, 6], [6, 4, 6])),
    (dict(last_epochs=0, ends=False, first=5), ([5, 4, 4],) * 3),
    (dict(last_epochs=0, ends=False, last=8), ([4, 4, 8],) * 3),
    (dict(last_epochs=0, first=8), ([8, 4, 6],) * 3),
    (dict(ends=False, first=8), ([8, 4, 4], [8, 4, 4], [8, 6, 6])),
    (dict(ends=False, first=5), ([5, 4, 4], [5, 4, 4], [6, 6, 6])),
    (dict(last_epochs=0, ends=False, intervals=((0, 1),)), ([6, 6, 6], [4, 4, 4], [4, 4, 4])),
    (dict(ends=False, intervals=((1, 2),), last=3), ([4, 4, 3], [6, 6, 6], [6, 6, 6]))])
def test_each_part_alone(options, widths):
    schedule = MixedMantissa(epochs=3, **options)
    assert tuple([schedule.mantissa(layer, 3, epoch) for layer in range(3)] for epoch in range(3)) == widths
    share = schedule.share([1, 1, 1])
    flat = [width for epoch in widths for width in epoch]
    assert share == {width: pytest.approx(flat.count(width) / 9) for width in sorted(set(flat))}


@pytest.mark.parametrize("options, message", [
    (dict(first=1), "First layer's width must be 2 to 16 bits, not 1"),
    (dict(base=8, boosted=4), "Boosted width must be the base width of 8 bits or more, not 4"),
    (dict(last=17), "Last layer's width must be 2 to 16 bits, not 17"),
    (dict(intervals=((2, 2),)), "Interval must be two epochs with 0 <= START < STOP <= 160, not 2, 2"),
    (dict(intervals=((0, 161),)), "Interval must be two epochs with 0 <= START < STOP <= 160, not 0, 161")])
def test_wrong_parts(options, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        MixedMantissa(**options)


def test_share_of_a_net_with_attention():
    """Attention with all that lies in it is one layer: neither its output projection nor its scores are the last."""
    torch = pytest.importorskip("torch")
    import golden.nn as gn
    from golden.study import shares
    from golden.study.text import CHARACTERS, LENGTH, CharacterTransformer, load
    net, (x, y, *_) = CharacterTransformer(layers=2), load(8, 4)
    assert torch.equal(x.flatten()[1:], y.flatten()[:-1]) and set(x.unique().tolist()) <= set(range(CHARACTERS))
    counts = shares.products(net, x[:1])
    gn.convert(net, gn.HBFPFormat(mantissa=4, block=(1, 16)))
    attention = LENGTH * 4 * 32 * 32 + 2 * LENGTH * LENGTH * 32
    mlp = LENGTH * 4 * 32 * 32
    ends = LENGTH * 32 * CHARACTERS
    assert shares.layer_macs(net, counts) == [ends, *[attention, mlp, mlp] * 2, ends]
    schedule = MixedMantissa(epochs=4, last_epochs=0)
    schedule.apply(gn.hbfp_layers(net), 0)
    assert [layer.formats.w.mantissa for _, layer in gn.hbfp_layers(net)] == [6, *[4] * 8, 6]
    total = 2 * ends + 2 * (attention + 2 * mlp)
    assert shares.share_of(schedule, net, counts)[6] == pytest.approx(2 * ends / total)


def test_share_by_hand():
    # Layers of 1, 8, 1 operations, 10 epochs: 9 x 8 of 100 stay narrow.
    assert MixedMantissa(epochs=10).share([1, 8, 1]) == {4: 0.72, 6: 0.28}


@pytest.mark.parametrize("macs", [resnet20_macs(), resnet50_macs()])
def test_published_share_of_one_epoch_in_330(macs):
    assert round(MixedMantissa(epochs=330, ends=False).share(macs)[4] * 100, 1) == 99.7


def test_share_of_the_task_that_is_trained():
    """docs/golden.md: first and last layer are a sixth of so small a network."""
    pytest.importorskip("torch")
    from golden.study.experiment import Run
    from golden.study.tasks import network
    from hbfp.format import HBFPFormat
    macs = [module.weight.numel() for module in network("teacher") if hasattr(module, "weight")]
    assert macs == linear_macs(16, 128, 128, 10)
    run = Run(task="teacher", fmt=HBFPFormat(mantissa=4), boost=6)
    assert round(run.schedule().share(macs)[4] * 100, 1) == 79.8


def test_shapes_add_up_to_the_known_totals():
    assert len(resnet20_macs()) == 20 and sum(resnet20_macs()) == 40_551_040        # 40.55 M
    assert len(resnet50_macs()) == 54 and round(sum(resnet50_macs()) / 1e9, 2) == 4.09


def test_shapes_are_those_of_the_network():
    torch = pytest.importorskip("torch")
    from golden.study.resnet import resnet20
    macs = []
    net = resnet20()
    for module in net.modules():
        if isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            module.register_forward_hook(lambda m, _, y: macs.append(y[0, 0].numel() * m.weight.numel()))
    net(torch.zeros(1, 3, 32, 32))
    assert macs == resnet20_macs()


def test_apply():
    pytest.importorskip("torch")
    import golden.nn as gn
    layers = [gn.HBFPLinear(4, 4) for _ in range(3)]
    MixedMantissa(epochs=2).apply(layers, 0)
    assert [layer.formats.x.mantissa for layer in layers] == [6, 4, 6]
    assert layers[1].formats.g.mantissa == layers[1].formats.w.mantissa == 4


@pytest.mark.parametrize("call, message", [
    (lambda: MixedMantissa(base=1), r"^Base width must be 2 to 16 bits, not 1$"),
    (lambda: MixedMantissa(boosted=17), r"^Boosted width must be 2 to 16 bits, not 17$"),
    (lambda: MixedMantissa(epochs=0), r"^Epochs must be 1 to 1000000, not 0$"),
    (lambda: MixedMantissa(epochs=5, last_epochs=6), r"^Last epochs must be 0 to 5, not 6$"),
    (lambda: MixedMantissa(epochs=5).mantissa(0, 3, 5), r"^Epoch must be 0 to 4, not 5$"),
    (lambda: MixedMantissa(epochs=5).mantissa(3, 3, 0), r"^Layer must be 0 to 2, not 3$")])
def test_wrong_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()
