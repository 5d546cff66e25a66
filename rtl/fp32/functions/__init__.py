"""FP32 functions: one datapath for any set of them."""
