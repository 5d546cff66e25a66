"""What a flow tells its user."""


class SynthError(RuntimeError):
    """A flow cannot go on; the message is one line, with the log's path where there is one."""
