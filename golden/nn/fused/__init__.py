"""Several models as one job."""

from .job import Each, FusedLinear, Job, SeededDropout, Step, cross_entropy, fuse, mse_loss

__all__ = ["Each", "FusedLinear", "Job", "SeededDropout", "Step", "cross_entropy", "fuse", "mse_loss"]
