"""Two workers for all tests of the directory: processes start slowly."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(scope="session")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=2, silence_logs=logging.CRITICAL, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
