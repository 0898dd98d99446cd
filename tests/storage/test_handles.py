"""Open handles of table versions, and how much of them is kept."""

from __future__ import annotations

from typing import Any

import pytest
from tests.storage.rows import LOCATION, appended, change, people, populated
from tests.stores import Store

from omnigraph.errors import RequestError
from omnigraph.storage.session import INDEX_SETTING, METADATA_SETTING
from omnigraph.storage.tables import TableRef

ADA_AND_BO = {"ada": 36, "bo": 7}


def test_a_handle_is_opened_once(store: Store) -> None:
    tables = store.tables()
    populated(tables, ADA_AND_BO)
    assert tables.open(TableRef(LOCATION, None, 2)) is tables.open(TableRef(LOCATION, None, 2))


def test_the_handles_used_least_recently_are_closed(local_store: Store) -> None:
    third = change(writer := local_store.tables(), populated(writer, ADA_AND_BO), {"ada": 37})
    refs = [TableRef(LOCATION, None, version) for version in (1, 2, third.version)]
    tables = local_store.tables(handles=2)
    first, second = tables.open(refs[0]), tables.open(refs[1])
    assert tables.open(refs[0]) is first
    tables.open(refs[2])
    assert tables.open(refs[0]) is first
    assert tables.open(refs[1]) is not second


def test_fewer_handles_stay_open_when_their_tables_have_many_fragments(local_store: Store) -> None:
    tables = local_store.tables()
    refs = [populated(tables, ADA_AND_BO)]
    for name in ("cy", "dee", "eve"):
        refs.append(tables.commit_staged(appended(tables, refs[-1], {name: 1})))
    assert [len(tables.open(ref).get_fragments()) for ref in refs] == [1, 2, 3, 4]
    tables = local_store.tables(fragments=7)
    opened = [tables.open(ref) for ref in refs]
    assert tables.open(refs[3]) is opened[3]
    assert tables.open(refs[2]) is opened[2]
    assert tables.open(refs[1]) is not opened[1]


def test_the_handle_of_a_table_with_too_many_fragments_stays_open_alone(local_store: Store) -> None:
    tables = local_store.tables(fragments=0)
    ref = populated(tables, ADA_AND_BO)
    assert tables.open(ref) is tables.open(ref)


def test_all_handles_share_one_session(store: Store) -> None:
    """Lance gives a table that it creates or restores by address a session of its own, without our bounds."""
    tables = store.tables()
    ref = populated(tables, ADA_AND_BO)
    other = populated(tables, ADA_AND_BO, "nodes/others")
    restored = tables.restore(TableRef(LOCATION, None, 1), ref.version)
    filled = tables.create_filled("nodes/filled", people(ADA_AND_BO))
    session: Any = tables.open(ref).session()
    for one in (other, restored, filled, change(tables, restored, {"cy": 3})):
        assert session.is_same_as(tables.open(one).session())


def test_the_caches_of_a_session_are_as_large_as_the_settings_say(
    local_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(METADATA_SETTING, "4096")
    tables = local_store.tables()
    ref = populated(tables, ADA_AND_BO)
    for age in range(20):
        ref = change(tables, ref, {"ada": age})
    assert tables.open(ref).session().size_bytes() < 16_384


@pytest.mark.parametrize("setting", [METADATA_SETTING, INDEX_SETTING])
def test_a_setting_that_is_no_number_is_refused_by_name(
    setting: str, local_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(setting, "1GB")
    with pytest.raises(RequestError, match=f"{setting}=1GB is not a number of bytes"):
        local_store.tables()
