"""The options of an accelerator that networks need, by area and cycles."""
