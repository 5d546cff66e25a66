"""From two networks to what came of them: the plan, the run, the models on the same arrivals, the comparison."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hbfp.golden.lower.serving import Serving
from hbfp.golden.perf.accelerator.colocate.followed import follow
from hbfp.golden.perf.accelerator.colocate.plan import HOST, Plan
from hbfp.golden.perf.dispatch import arrivals
from hbfp.system import Accelerator

from ..accelerator.device import Device, Timing
from ..accelerator.untimed import Untimed
from ..bench.comparison import Comparison
from ..manifest import Manifest
from ..simulate.verilator import Progress
from . import untimed
from .clients import Clients
from .descriptors import Asked, RingHost, late
from .report import Report
from .trainer import Trainer
from .verilog import Host, Shown, Site


@dataclass(frozen=True)
class Both:
    """A network that serves and one that trains, for half of an accelerator's memories each.

    Attributes
    ----------
    accelerator : Accelerator
        Of two contexts, with a dispatcher.
    serving : Serving
    clients : Clients
    step : Step, Job or None
    batches : iterator
        Of the training.
    plan : Plan
    arrivals : ndarray of int64
        Cycles in which requests are to be brought.
    asked : Asked, optional
        How they come from a ring of descriptors.
    """
    accelerator: Accelerator
    serving: Serving
    clients: Clients
    step: Any
    batches: Any
    plan: Plan
    arrivals: np.ndarray
    asked: Asked | None = None

    @property
    def ring(self) -> dict[str, Any]:
        """What the models are given of the ring."""
        return {"reads": self.asked.reads, "kinds": self.asked.kinds} if self.asked else {}

    def trainer(self, place: Any) -> Trainer | None:
        """The training at a place; None if nothing trains."""
        return None if self.plan.train is None else Trainer(self.step, self.plan.train, self.batches, place)


def cycles(asked: dict[str, Any], plan: Plan) -> np.ndarray:
    """The cycles in which requests come, by the options of ``golden colocate``."""
    found = asked["times"] if asked["times"] is not None else arrivals.times(
        asked["arrivals"], asked["requests"], asked["load"] * plan.policy.batch / plan.service, asked["seed"])
    return np.floor(found).astype(np.int64)[:asked["requests"]]


def on_machine(both: Both) -> Report:
    """Batches and quanta in the order of the models, on the golden machine."""
    plan, clients = both.plan, both.clients
    followed = follow(plan.unit, plan.policy, plan.service, plan.quanta, both.arrivals.tolist(), again=HOST,
                      **both.ring)
    place = None if plan.train is None else Untimed(plan.train.program)
    trainer = both.trainer(place)
    answers = untimed.run(both.accelerator, clients, trainer, None if place is None else place.dram,
                          followed.turns)
    return _report(both, followed.completions, followed, answers, trainer, 0, both.arrivals.tolist())


def on_verilog(manifest: Manifest, both: Both, *, timing: Timing, level: str = "-O3", progress: Progress | None = None
               ) -> tuple[Report, Shown]:
    """Both on the Verilated accelerator, and the models on the arrivals that it stamped.

    Raises
    ------
    BuildError, BusError
        If a tool fails, the accelerator breaks a rule of AXI, or nothing goes on any more.
    """
    plan, accelerator = both.plan, both.accelerator
    asked = both.asked
    site = Site(both.clients, None if plan.train is None else plan.train.program, asked.bytes if asked else 0)
    trainer = both.trainer(site.training)
    with Device(manifest.verilog, manifest.top, beat=accelerator.beat, memory=site.memory, burst=accelerator.burst,
                contexts=2, timing=timing, level=level, progress=progress) as device:
        given = device, site, both.clients, trainer, plan.policy
        shown = (RingHost(*given, asked=asked) if asked else Host(*given)).run(both.arrivals)
    stamps = [each.arrived for _, each in sorted(shown.completions.items())]
    ring = {**both.ring, "taken": shown.taken} if asked else {}
    followed = follow(plan.unit, plan.policy, plan.service, plan.quanta, shown.told if asked else stamps,
                      rung=shown.rung, **ring)
    report = _report(both, shown.completions, followed, shown.answers, trainer, shown.refused,
                     shown.told if asked else stamps)
    return replace(report, denied=shown.denied, late=report.late + late(shown.denied, followed.refused)), shown


def _report(both, completions, followed, answers, trainer, refused, came):
    plan = both.plan
    without = plan.train and follow(plan.unit, replace(plan.policy, training=False), plan.service, None, came,
                                    **both.ring).completions
    other = sum(each != followed.completions.get(request) for request, each in completions.items())
    return Report(plan, completions, followed, answers, trainer.compared if trainer else Comparison(),
                  trainer.done if trainer else 0, refused, other, followed.refused, without)
