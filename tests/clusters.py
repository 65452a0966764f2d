"""Clusters of Dask on this machine."""

__all__ = ("local_cluster",)

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from distributed import LocalCluster


@contextmanager
def local_cluster(workers: int) -> Iterator[LocalCluster]:
    """Start worker processes, for which Dask changes the environment of this one; leave that as it was."""
    with mock.patch.dict(os.environ), LocalCluster(workers, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster
