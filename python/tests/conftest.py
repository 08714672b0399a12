"""Datasets for the tests. `tests/offline/exports/python.rs` makes them: `cargo test --test offline python`."""

import os
from pathlib import Path

import pytest

import iotrace

#: Those without losses and with an end.
WHOLE = ["calls", "sums", "nodes", "periods"]


def pytest_configure(config):
    for name in ("IOTRACE_TEST_DATA", "IOTRACE_BPF", "IOTRACE_TEST_NOTEBOOK"):
        if name not in os.environ:
            raise pytest.UsageError(f"{name} is not set: run `cargo test --test offline python`")


@pytest.fixture(scope="session")
def data():
    return Path(os.environ["IOTRACE_TEST_DATA"])


@pytest.fixture(scope="session", params=["calls", "sums"])
def either(request, data):
    with iotrace.open(data / request.param) as run:
        yield run


@pytest.fixture(scope="session")
def calls(data):
    with iotrace.open(data / "calls") as run:
        yield run


@pytest.fixture(scope="session")
def sums(data):
    with iotrace.open(data / "sums") as run:
        yield run


@pytest.fixture(scope="session")
def nodes(data):
    with iotrace.open(data / "nodes") as run:
        yield run
