"""Parameters of the parts: sizes of an accelerator, by the names that they have there."""

from dataclasses import dataclass, fields, replace


@dataclass(frozen=True)
class Sizes:
    """Base of the ``Parameters`` of parts: each field is what an accelerator, its core or its format calls so.

    What a field is, :class:`hbfp.system.Accelerator`, :class:`hbfp.design.Design` or
    :class:`hbfp.format.HBFPFormat` says. A part has those that it reads and no others, so that accelerators share it
    which differ in something else.
    """

    @classmethod
    def of(cls, system):
        """The parameters of this part of an accelerator."""
        sources = system, system.core, system.core.format
        return cls(**{name: getattr(next(source for source in sources if hasattr(source, name)), name)
                      for name in (item.name for item in fields(cls))})

    @property
    def beat(self):
        """Bytes of a beat of the bus, which is a word of V."""
        return 4 * self.lanes


@dataclass(frozen=True)
class BurstSizes(Sizes):
    """Of parts that have only the bits of ``burst``: it is the most beats whose count and places have as many bits.

    A power of two stays as it is, as a count of so many beats has a bit more than their places. Accelerators whose
    bursts differ within these bits share the part.
    """

    @classmethod
    def of(cls, system):
        """The parameters of this part of an accelerator."""
        sizes = super().of(system)
        bits = sizes.burst.bit_length()
        return replace(sizes, burst=sizes.burst if sizes.burst == 1 << bits - 1 else (1 << bits) - 1)
