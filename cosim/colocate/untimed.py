"""Batches and quanta on the golden machine, in the order that the models give them: bits, and no cycles."""

from collections.abc import Iterator

from hbfp.golden.machine.dram import Dram
from hbfp.golden.machine.machine import Machine
from hbfp.golden.machine.memories import Memories
from hbfp.golden.perf.accelerator.colocate.followed import Turn
from hbfp.system import Accelerator

from ..accelerator.beside import SHARES_OF_BOTH
from ..bench.comparison import Comparison
from .clients import Clients
from .trainer import Trainer


def run(accelerator: Accelerator, clients: Clients, trainer: Trainer | None, beside: Dram | None,
        turns: list[Turn]) -> Comparison:
    """Run batches and quanta in their order, a step that is under way to its end; what came of the answers.

    Parameters
    ----------
    accelerator : Accelerator
        Of two contexts, each with half of its memories.
    clients : Clients
    trainer, beside : Trainer and Dram, or None
        The training, and the DRAM of its place.
    turns : list of Turn

    Raises
    ------
    MachineError
        If a program's result is undefined.
    """
    memories, whole = Memories(accelerator), clients.program([0])
    first, second = (memories.share(accelerator, share) for share in SHARES_OF_BOTH)
    dram, answers = Dram(whole.limit, whole.memory), Comparison()
    clients.put(dram.put)
    step = _steps(trainer, second, beside) if trainer is not None else iter(())
    for turn in turns:
        if turn.piece < 0:
            Machine(clients.program(turn.requests), memories=first, dram=dram).run()
            answers += clients.compare(dram.get, turn.requests)
        else:
            next(step)
    if trainer is not None:
        while trainer.under_way:
            next(step)
        trainer.finish()
    return answers


def _steps(trainer: Trainer, memories: Memories, dram: Dram | None) -> Iterator[None]:
    """Steps without end, quantum by quantum."""
    while True:
        for _ in Machine(trainer.begin(), memories=memories, dram=dram).turns():
            yield
        trainer.end()
        yield
