"""Whatever a bucket does to an operation: the graph opens, what was acknowledged is there, and writing goes on."""

from __future__ import annotations

import os

import pytest
from tests.faults.operations import OPERATIONS
from tests.faults.places import a_bucket
from tests.faults.trials import report, try_all
from tests.stores import S3Server

SOME = 2
"""This many of the several hundred faults of an operation, evenly spread, are tried in every test run, and only of
some operations."""

MORE = None if os.environ.get("OMNIGRAPH_ALL_FAULTS") else 4
"""This many of each operation are tried in `make long`, and all of them if that is asked for."""

QUICK = ("schema change on main",)


@pytest.mark.parametrize("name", QUICK)
def test_some_faults_of(s3_server: S3Server, name: str) -> None:
    with a_bucket(s3_server) as place:
        _, findings = try_all(name, place, SOME)
    assert not findings, report(findings)


@pytest.mark.long
@pytest.mark.parametrize("name", OPERATIONS)
def test_more_faults_of(s3_server: S3Server, name: str) -> None:
    with a_bucket(s3_server) as place:
        _, findings = try_all(name, place, MORE)
    assert not findings, report(findings)
