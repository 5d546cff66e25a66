"""Reports of cores that were never synthesised."""


class FakeReport:
    """As much of :class:`synth.area.Report` as tables and pictures ask for; ``core`` is the area a MAC."""
    recipe, library = "area", {"name": "some"}

    def __init__(self, core, design):
        self.core, self.design, self.name = core, design.as_dict(), design.name

    def scopes(self):
        return {"mac": self.core - 20, "element": self.core - 10, "core": self.core, "core and side": self.core + 5}
