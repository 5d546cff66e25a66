"""Emit Verilog and its manifest from a design."""

if __name__ == "gen":    # a checkout's short name
    from hbfp.checkout import alias

    alias("gen")
