"""Drives an accelerator: C for a CPU beside it, and the same calls in Python."""

if __name__ == "runtime":    # a checkout's short name
    from hbfp.checkout import alias

    alias("runtime")
