"""From PyTorch models to programs of the accelerator."""
