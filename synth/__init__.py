"""Area and timing of the emitted Verilog."""

if __name__ == "synth":    # a checkout's short name
    from hbfp.checkout import alias

    alias("synth")
