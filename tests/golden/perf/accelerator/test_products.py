"""The table by layer and product: what a step's layer is named after says where its cycles count."""

from golden.perf.accelerator.products import OTHERS, PARTS, by_product, table

MODULES = ["", "lines", "encoder", "encoder.norm1", "encoder.norm10"]


def row(name, cycles, macs=0):
    return {"name": name, "cycles": cycles, "macs": macs}


def test_rows_are_layers_of_the_model():
    """The innermost whose name it is; a layer with two rows has their sum, and none has no row."""
    found = by_product([
        row("forward lines", 1, 10), row("forward encoder.norm1", 2), row("forward encoder add_2", 4, 20),
        row("forward log_softmax", 8), row("backward lines.bias", 16), row("gx ", 32, 5), row("gw lines", 64, 10),
        row("update encoder.norm1.weight", 128), row("update encoder.norm1.bias", 256),
        row("gw lines matmul_2", 512, 1)], MODULES)
    none = dict.fromkeys((*PARTS, "macs"), 0)
    assert found == [
        none | {"name": "lines", "forward": 1, "backward": 16, "gw": 576, "macs": 21},
        none | {"name": "encoder", "forward": 4, "macs": 20},
        none | {"name": "encoder.norm1", "forward": 2, "update": 384},
        none | {"name": OTHERS, "forward": 8, "gx": 32, "macs": 5}]
    assert table(found).row_count == 4
