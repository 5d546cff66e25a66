"""Reports of cores that were never synthesised."""

from synth.measure.area import Figures


class FakeReport:
    """As much of :class:`synth.measure.area.Report` as tables and pictures ask for; ``core`` is the area a MAC."""
    recipe, library, bit, tools = "area", {"name": "some"}, 1.2, {"yosys": "1"}

    def __init__(self, core, design):
        self.core, self.design, self.name = Figures(area=core), design, design.name

    def as_dict(self):
        return {"name": self.name}

    def scopes(self):
        area = self.core.area
        return {"mac": area - 20, "element": area - 10, "core": area, "core and side": area + 5,
                "core and memories": area + 100, "everything": area + 105}
