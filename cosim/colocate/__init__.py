"""A serving and a training network on one accelerator with its dispatcher, against PyTorch and the models."""
