"""Components that are described by the whole accelerator."""

from hbfp.system import Accelerator

from ..lib.component import Component


class Part(Component):
    """A part of an accelerator; its parameters are the accelerator's, and the module's name ends in its name."""
    Parameters = Accelerator

    @classmethod
    def of(cls, system):
        """The part of an accelerator."""
        return cls.made(system)

    @property
    def module(self):
        """Name of the Verilog module."""
        return f"hbfp_{self.kind}_{self.params.name}"
