"""Amaranth components of the HBFP core."""

if __name__ == "rtl":    # a checkout's short name
    from hbfp.checkout import alias

    alias("rtl")
