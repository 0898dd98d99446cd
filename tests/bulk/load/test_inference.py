"""Schemas proposed from data: types, keys and edges as far as they can be told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.load.inference.samples import type_name
from omnigraph.bulk.load.inference.types import guess_type
from omnigraph.errors import SourceUnusable
from omnigraph.lang.schema.catalog import load_catalog


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """Airports, the flights between them, and people who live near them."""
    (tmp_path / "airports.csv").write_text(
        'IATA,name,lat,opened\nOSL,Oslo,60.2,1998-10-08\nBGO,Bergen,60.3,\nTRD,"Trondheim, V\u00e6rnes",63,\n'
    )
    with gzip.open(tmp_path / "flights.csv.gz", "wt") as file:
        file.write("no,Origin,Dest,at\n007,OSL,BGO,2024-05-17T10:00:00Z\n008,OSL,TRD,2024-05-17T11:00:00Z\n")
        file.write("007,OSL,BGO,2024-05-18T10:00:00Z\n009,BGO,XXX,2024-05-18T11:00:00Z\n")
    people = [{"id": 1, "name": "Ada", "home": "OSL"}, {"id": 2, "name": "Bo", "home": "TRD", "age": 7}]
    (tmp_path / "people.jsonl").write_text("".join(f"{json.dumps(p)}\n" for p in people))
    return tmp_path


def test_a_proposal(world: Path) -> None:
    files = [world / "airports.csv", world / "flights.csv.gz", world / "people.jsonl"]
    found = omnigraph.infer_schema(files)
    assert (
        found.schema
        == """\
// Proposed from data. Names, types, keys and edges are guesses: edit them.

node Airport {
  iata: String @key
  name: String
  lat: F64
  opened: Date?
}

node Person {
  person_id: I64 @key
  name: String
  home: String
  age: I64?
}

edge Flight: Airport -> Airport {
  no: String
  at: DateTime
  @key(src, dst, at)
  // not all ends exist: Dest (33.3% of its values); --skip-bad leaves such edges out
}

edge PersonHome: Person -> Airport {
  @key(src, dst)
}
"""
    )
    assert (
        found.mapping(world)
        == """\
nodes:
  Airport:
    data: airports.csv
    columns: {iata: IATA, name: name, lat: lat, opened: opened}
  Person:
    data: people.jsonl
    columns: {person_id: id, name: name, home: home, age: age}
edges:
  Flight: {data: flights.csv.gz, from: Origin, to: Dest}
  PersonHome:
    data: people.jsonl
    from: id
    to: home
    columns: {}
"""
    )


def test_what_is_proposed_is_a_schema_of_which_the_sources_fit(world: Path) -> None:
    found = omnigraph.infer_schema(world)
    catalog = load_catalog(found.schema)
    for name, source in found.nodes.items():
        assert source.layout(catalog.nodes[name])
    for name, source in found.edges.items():
        assert source.layout(catalog.edges[name])


def test_records_that_name_their_types(tmp_path: Path) -> None:
    lines = [
        {"type": "Person", "data": {"name": "Ada", "tags": ["x"]}},
        {"type": "Person", "data": {"name": "Bo"}},
        {"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"since": "2001-01-01"}},
        {"edge": "Knows", "from": "Bo", "to": "Ada", "data": {"since": "2001-01-01"}},
    ]
    path = tmp_path / "all.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    found = omnigraph.infer_schema(path)
    catalog = load_catalog(found.schema)
    assert catalog.nodes["Person"].key == ("name",)
    assert str(catalog.nodes["Person"].properties["tags"].type) == "[String]?"
    assert (catalog.edges["Knows"].source, catalog.edges["Knows"].key) == ("Person", ("src", "dst"))
    assert (found.nodes, found.edges, found.records) == ({}, {}, (str(path),))
    graph = omnigraph.init(tmp_path / "g.omni", found.schema)
    assert graph.load(path, mode="merge").total_entities == 4


def test_files_of_a_folder_are_one_type_and_arrow_data_has_the_name_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "trips").mkdir()
    for part in range(2):
        pq.write_table(pa.table({"trip_id": [part], "far": [1.5]}), tmp_path / "trips" / f"part-{part}.parquet")
    found = omnigraph.infer_schema(tmp_path / "trips")
    assert list(found.nodes) == ["Trip"]
    assert len(found.nodes["Trip"].data) == 2
    vectors = pa.array([[float(n)] * 8 for n in range(3)])
    rows = pa.table({"code": ["a", "b", "c"], "v": vectors, "raw": pa.array([b"", b"x", None])})
    assert "v: Vector(8)\n  raw: Blob?" in omnigraph.infer_schema({"Item": rows}).schema


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (["1", "-2"], "I64"),
        (["01", "2"], "String"),
        (["1", "2.5", "3e4"], "F64"),
        (["true", "FALSE"], "Bool"),
        (["2024-02-29", None], "Date?"),
        (["2024-02-29T00:00Z"], "DateTime"),
        (["2024-02-29T00:00"], "String"),
        ([None], "String?"),
        (["x"] * 30 + ["y"] * 30, "String"),
    ],
)
def test_what_texts_are(values: list[str | None], told: str) -> None:
    assert guess_type(pa.chunked_array([pa.array(values, pa.string())]), is_text=True).spelled == told


def test_texts_of_a_file_with_types_stay_texts_unless_they_are_dates() -> None:
    assert guess_type(pa.chunked_array([["1", "2"]]), is_text=False).type == "String"
    assert guess_type(pa.chunked_array([["2024-01-01"]]), is_text=False).type == "Date"


def test_names_of_types() -> None:
    names = ["flight_legs.csv.gz", "people.csv", "a/cities/part-0001.parquet", "classes.csv", "2015 data.csv"]
    assert [type_name(name) for name in names] == ["FlightLeg", "Person", "City", "Class", "T2015Data"]


def test_only_the_first_rows_are_looked_at(tmp_path: Path) -> None:
    (tmp_path / "n.csv").write_text("k,v\n" + "".join(f"{i},1\n" for i in range(100)) + "x,y\n")
    assert "v: I64" in omnigraph.infer_schema(tmp_path / "n.csv", rows=50).schema
    assert "v: String" in omnigraph.infer_schema(tmp_path / "n.csv").schema


def test_what_is_no_data(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"1")
    with pytest.raises(SourceUnusable, match="from CSV, TSV, Parquet and JSON Lines"):
        omnigraph.infer_schema(tmp_path / "x.bin")
    (tmp_path / "x.jsonl").write_text("{}\n{")
    with pytest.raises(SourceUnusable, match="line 2 is not JSON"):
        omnigraph.infer_schema(tmp_path / "x.jsonl")
