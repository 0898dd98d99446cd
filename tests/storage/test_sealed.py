"""Control objects with a checksum: what was written comes back, or an error that names the object."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress

import pytest

from omnigraph.errors import ObjectDamaged
from omnigraph.storage.control.sealed import seal, unseal

FIELDS = {"native": "dev.01j", "version": 7, "parent": None, "creator": "Åsa", "tables": [{"a": 1.5}]}


def test_what_is_sealed_can_be_read() -> None:
    assert unseal("a.json", seal(FIELDS)) == FIELDS
    assert json.loads(seal(FIELDS)).keys() == FIELDS.keys() | {"checksum"}


def test_an_object_of_an_older_release_has_no_checksum_and_is_read() -> None:
    assert unseal("a.json", json.dumps(FIELDS).encode()) == FIELDS


def test_a_changed_byte_is_found_wherever_it_is() -> None:
    whole = seal(FIELDS)
    for place in range(len(whole)):
        for bit in range(8):
            content = bytearray(whole)
            content[place] ^= 1 << bit
            with suppress(ObjectDamaged):
                found = unseal("a.json", bytes(content))
                assert {key: found[key] for key in FIELDS} == FIELDS, f"byte {place}, bit {bit}"


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_a_part_is_not_the_whole(cut: int) -> None:
    with pytest.raises(ObjectDamaged, match=r"a\.json is damaged"):
        unseal("a.json", seal(FIELDS)[:cut])


@pytest.mark.parametrize(
    "content", [b"[]", b"null", b"5", b"\xff", b"\x00" * 40, b"[" * 200_000, b'{"a":' * 200_000, b"1" * 5000]
)
def test_whatever_else_is_there_is_damage(content: bytes) -> None:
    with pytest.raises(ObjectDamaged) as caught:
        unseal("a.json", content)
    assert pickle.loads(pickle.dumps(caught.value)).as_json() == caught.value.as_json()
    assert str(caught.value).endswith("; restore it from a copy of the graph")
