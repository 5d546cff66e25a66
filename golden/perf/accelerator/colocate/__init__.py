"""Inference beside training on one accelerator: quanta, batches, latencies."""
