"""Components that become one Verilog module each, however often they are used."""

from amaranth.lib import wiring


class Cell(wiring.Component):
    """A component that is emitted once and instantiated by name.

    Subclasses set ``kind``, describe their logic in :meth:`body` and hand every parameter that changes it to
    ``__init__``: the parameters make the module's name. Under a platform with ``place`` (see :mod:`gen.emit`) a
    cell elaborates to an instance of its module; without one to its logic, so that Amaranth's simulator runs it.

    Parameters
    ----------
    members : dict
        Ports, as for :class:`amaranth.lib.wiring.Signature`.
    **params
        Name and value of each parameter, in the order in which they stand in the module's name.
    """
    #: Stem of the module's name.
    kind = None

    def __init__(self, members, **params):
        super().__init__(members)
        self.params = params

    @property
    def module(self):
        """Name of the Verilog module."""
        return "_".join(["hbfp", self.kind, *(f"{name}{value}" for name, value in self.params.items())])

    def elaborate(self, platform):
        place = getattr(platform, "place", None)
        instance = place(self) if place else None
        return self.body(platform) if instance is None else instance

    def body(self, platform):
        """The logic: an :class:`amaranth.Module`."""
        raise NotImplementedError
