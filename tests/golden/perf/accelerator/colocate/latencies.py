"""Latencies of a small core, as a manifest has them; tests of the model need any that could be."""

from hbfp.manifest import core_latency
from tests.golden.lower.test_yields import SYSTEM

LATENCY = core_latency(SYSTEM.core)
