"""Designs beside each other: baselines, sweeps, equal clocks, published figures."""
