"""What numbers are: arrays of them, rounding, blocks, FP32."""
