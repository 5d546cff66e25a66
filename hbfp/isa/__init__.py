"""What the accelerator understands, as data: instructions and registers; docs/design/11-accelerator.md."""
