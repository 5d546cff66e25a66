"""Whether kernels can run, and on what."""

import os

#: Whether Triton runs the kernels in Python, on the CPU: ``TRITON_INTERPRET=1`` when this was imported.
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
