"""The faults of an S3 store do what they say, to single requests and to Lance's."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import timedelta

import lance
import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import BaseError
from obstore.store import S3Store
from tests.faults.store import Action, Faults, Rule, faulty_store
from tests.stores import S3Server, Store, present

from omnigraph.storage.objects import ObjectStore


@pytest.fixture
def faults(s3_server: S3Server) -> Iterator[Faults]:
    with faulty_store(s3_server) as found:
        yield found


@pytest.fixture
def honest(s3_server: S3Server, faults: Faults) -> ObjectStore:
    """The same place through the port that always works."""
    return Store(faults.store.uri, s3_server.options()).objects()


@pytest.fixture
def hurried(faults: Faults) -> S3Store:
    """A client that reports the first failure."""
    options = faults.store.options
    return S3Store(
        faults.store.address.bucket,
        prefix=faults.store.address.prefix,
        config={key: value for key, value in options.items() if key.startswith("aws_")},  # type: ignore[arg-type]
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=1)},
    )


@pytest.mark.parametrize("action", ["500", "503", "refuse"])
def test_a_request_is_answered_with_an_error_and_not_done(
    faults: Faults, honest: ObjectStore, hurried: S3Store, action: Action
) -> None:
    faults.arm(Rule("PUT", "a/*.json", 1, action))
    with pytest.raises((BaseError, PermissionError)):
        obstore.put(hurried, "a/b.json", b"content")
    assert honest.get("a/b.json") is None
    obstore.put(hurried, "a/b.json", b"content")
    assert honest.get("a/b.json") is not None


def test_a_rule_strikes_the_occurrence_and_the_keys_it_names(faults: Faults, hurried: S3Store) -> None:
    faults.arm(Rule("PUT", "a/*.json", 2, "refuse"))
    refused = []
    for key in ("a/1.json", "b/1.json", "a/b/1.json", "a/2.json", "a/3.json"):
        try:
            obstore.put(hurried, key, b"content")
        except (BaseError, PermissionError):
            refused.append(key)
    assert refused == ["a/2.json"]
    assert faults.disarm() == [1]


def test_a_reply_is_lost(faults: Faults, honest: ObjectStore, hurried: S3Store) -> None:
    faults.arm(Rule("PUT", "a.json", 1, "lost"))
    with pytest.raises(BaseError):
        obstore.put(hurried, "a.json", b"content")
    assert honest.get("a.json") is not None


def test_a_request_arrives_late(faults: Faults, honest: ObjectStore, hurried: S3Store) -> None:
    """It has failed for its sender, and is done when it arrives, under the conditions it came with."""
    faults.arm(Rule("PUT", "*.json", 1, "late", sticky=True))
    for key in ("free.json", "taken.json"):
        with pytest.raises(BaseError):
            obstore.put(hurried, key, b"late", mode="create")
        assert honest.get(key) is None
    faults.disarm()
    honest.put("taken.json", b"in time")
    assert faults.release() == 2
    assert present(honest, "free.json").content == b"late"
    assert present(honest, "taken.json").content == b"in time"
    arrived = [(request.key, request.status) for request in faults.journal() if request.fault == "arrived"]
    assert arrived == [("free.json", "200"), ("taken.json", "412")]


def test_a_late_request_can_arrive_by_itself(faults: Faults, honest: ObjectStore, hurried: S3Store) -> None:
    faults.arm(Rule("PUT", "a.json", 1, "late", seconds=0.05))
    with pytest.raises(BaseError):
        obstore.put(hurried, "a.json", b"late")
    while honest.get("a.json") is None:
        time.sleep(0.01)


def test_what_stalls_happens_later(faults: Faults, honest: ObjectStore, hurried: S3Store) -> None:
    faults.arm(Rule("PUT", "a.json", 1, "stall", seconds=0.5))
    sender = threading.Thread(target=obstore.put, args=(hurried, "a.json", b"content"))
    sender.start()
    assert honest.get("a.json") is None
    sender.join()
    assert honest.get("a.json") is not None


def test_what_was_asked_is_in_the_journal(faults: Faults, hurried: S3Store) -> None:
    """Listing and deleting many are methods of their own, and families of methods can fail."""
    obstore.put(hurried, "a/b.json", b"content")
    obstore.get(hurried, "a/b.json")
    list(obstore.list(hurried, "a"))
    obstore.delete(hurried, ["a/b.json", "a/c.json"])
    faults.arm(Rule("ANY", "**", 1, "500", sticky=True))
    with pytest.raises(BaseError):
        obstore.head(hurried, "a/b.json")
    assert [(request.method, request.key, request.status) for request in faults.journal()] == [
        ("PUT", "a/b.json", "200"),
        ("GET", "a/b.json", "200"),
        ("LIST", "a", "200"),
        ("DELETE", "a/b.json", "200"),
        ("HEAD", "a/b.json", "500"),
    ]


def test_a_place_is_put_back_to_what_was_saved(faults: Faults, honest: ObjectStore) -> None:
    honest.put("kept.json", b"before")
    honest.put("deleted.json", b"before")
    faults.save()
    honest.put("kept.json", b"after")
    honest.put("new.json", b"after")
    honest.delete("deleted.json")
    faults.restore()
    assert honest.list("") == ["deleted.json", "kept.json"]
    assert present(honest, "kept.json").content == b"before"


@pytest.mark.parametrize("action", ["500", "lost"])
def test_lance_reports_the_first_failure(faults: Faults, action: Action) -> None:
    faults.arm(Rule("PUT", "t/data/*.lance", 1, action))
    with pytest.raises(OSError, match="PUT"):
        lance.write_dataset(pa.table({"a": [1]}), f"{faults.store.uri}/t", storage_options=faults.store.options)


def test_a_late_version_of_a_table_arrives(faults: Faults) -> None:
    """Its writer was told that it failed."""
    uri, options = f"{faults.store.uri}/t", faults.store.options
    lance.write_dataset(pa.table({"a": [1]}), uri, storage_options=options)
    faults.arm(Rule("PUT", "t/_versions/*.manifest", 1, "late"))
    with pytest.raises(OSError, match="PUT"):
        lance.write_dataset(pa.table({"a": [2]}), uri, mode="append", storage_options=options)
    assert lance.dataset(uri, storage_options=options).count_rows() == 1
    faults.release()
    assert lance.dataset(uri, storage_options=options).count_rows() == 2
