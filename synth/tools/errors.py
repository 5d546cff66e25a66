"""What a flow tells its user."""


class SynthError(RuntimeError):
    """A flow cannot go on; the message is one line, with the log's path where there is one."""


#: Exit status of a command by what went wrong, for :func:`hbfp.command.run`.
FAILURES: dict[type[Exception], int] = {SynthError: 1}
