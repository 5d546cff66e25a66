"""Benches on the emitted Verilog, compared with the golden model bit for bit."""

if __name__ == "cosim":    # a checkout's short name
    from hbfp.checkout import alias

    alias("cosim")
