"""joblib's jobs on the workers of a Dask scheduler."""

import sys

import joblib
import pytest

from golden.command.workers import dask_workers
from hbfp.values import OptionError


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(OptionError, match=r"^--scheduler tcp://here:1: needs Dask, pip install 'hbfp\[dask\]'$"):
        with dask_workers("tcp://here:1"):
            pass


def test_nobody_answers():
    pytest.importorskip("distributed")
    with pytest.raises(OptionError, match=r"^--scheduler nowhere: no Dask scheduler answers there$"):
        with dask_workers("nowhere"):
            pass


@pytest.mark.filterwarnings("ignore")    # Dask's own
def test_jobs_run_there():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False,
                                  dashboard_address=None) as cluster:
        with dask_workers(cluster.scheduler_address):
            assert joblib.Parallel()(joblib.delayed(divmod)(n, 3) for n in range(4)) == [(0, 0), (0, 1), (0, 2), (1, 0)]
