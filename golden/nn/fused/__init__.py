"""Several models of one architecture trained as one job, bit for bit as if each were trained alone.

    job = fuse(models)                       # formats, seeds, schedules, optimisers stay each model's own
    loss = cross_entropy(job(inputs), targets, job.count)
    loss.backward()
    step()                                   # step = Step(job, optimisers), or each optimiser's own

The models' batches travel behind each other in one batch dimension. Linear layers run all models in
one call; operations that treat each element or row alone run once over everything; every other layer
runs model by model on its part, which is the same computation by construction, or in one call where
that is proven to have the same bits. The models keep their parameters, so any
``torch.optim`` optimiser and scheduler serves, and a loss is the sum of the models' own losses:
no gradient needs scaling.
"""

from .dropout import SeededDropout, seed_dropout
from .each import Each
from .job import Job, fuse, signature
from .linear import FusedLinear
from .loss import cross_entropy, mse_loss
from .step import Step

__all__ = ["Each", "FusedLinear", "Job", "SeededDropout", "Step", "cross_entropy", "fuse", "mse_loss", "seed_dropout",
           "signature"]
