"""The main job: generate, co-simulate, measure."""

if __name__ == "flow":    # a checkout's short name
    from hbfp.checkout import alias

    alias("flow")
