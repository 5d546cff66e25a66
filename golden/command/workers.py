"""Workers of a Dask scheduler, in the place of joblib's processes here."""

from collections.abc import Iterator
from contextlib import contextmanager

from joblib import parallel_config

from hbfp.values import refuse


@contextmanager
def dask_workers(address: str) -> Iterator[None]:
    """Within, joblib sends its jobs to the workers of the scheduler at ``address``; they must share this folder.

    Raises
    ------
    OptionError
        If Dask is not installed or nobody answers at the address.
    """
    try:
        from distributed import Client
    except ImportError:
        raise refuse("scheduler", address, "needs Dask, pip install 'hbfp[dask]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError):
        raise refuse("scheduler", address, "no Dask scheduler answers there") from None
    with client, parallel_config(backend="dask", client=client):
        yield
