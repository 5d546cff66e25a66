"""Latencies of a small core, as a manifest has them; tests of the model need any that could be."""

from hbfp import generator
from hbfp.manifest import Manifest
from tests.golden.lower.test_yields import SYSTEM

LATENCY = Manifest.load(generator.emitted(SYSTEM.core.name, generator.words(SYSTEM.core))).latency
