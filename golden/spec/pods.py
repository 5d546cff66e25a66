"""What the memories of a machine of pods are called, and what their words hold; lowest field first.

Of a command the bits ``address`` and ``vectors`` are as many as an address of their memory takes; a command whose
``enable`` is 0 has its place do nothing in the round.
"""

from enum import IntEnum


class Place(IntEnum):
    """Memories that a host writes, each once for every pod, bank, post-processor or network."""
    X = 0           #: rows of tiles of X, in the banks
    W = 1           #: rows of tiles of W
    VECTORS = 2     #: factors and biases, in the post-processors: a pair of words for each column tile
    READ_X = 3      #: schedule: tile of X that a bank gives
    READ_W = 4      #: tile of W, a round ahead of its use
    READ_SUM = 5    #: partial sum that a bank gives a pod
    WRITE_SUM = 6   #: where a bank keeps the partial sum that comes in
    READ_POST = 7   #: partial sum that a bank gives a post-processor
    POST = 8        #: what a post-processor does, and the rows of its own memory that it does it with
    WRITE_X = 9     #: where a bank of X keeps the result that comes in
    ROUTE = 10      #: settings of the networks, :class:`Network`


class Network(IntEnum):
    """The networks, in the order of their schedule memories."""
    X = 0
    W = 1
    SUM_IN = 2
    SUM_OUT = 3
    POST = 4
    RESULT = 5


#: Steps of a post-processor's command, in the order of their bits.
STEPS = ("scale", "bias", "relu")
