"""The main job: generate, co-simulate, measure."""
