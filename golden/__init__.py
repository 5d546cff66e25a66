"""What is true: the NumPy golden model of hybrid block floating point."""

if __name__ == "golden":    # a checkout's short name
    from hbfp.checkout import alias

    alias("golden")
