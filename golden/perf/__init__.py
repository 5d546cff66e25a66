"""Cycle models: how long things take, from the design and the latencies in its manifest."""
