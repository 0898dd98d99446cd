"""Schemas proposed from data: types, keys and edges as far as they can be told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph.bulk.load.inference.samples import type_name
from omnigraph.bulk.load.inference.types import guess_type
from omnigraph.bulk.load.sources.mapping import read_map
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


def test_two_columns_of_keys_are_ends_although_the_few_values_of_the_first_are_unique(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("name,born\nAnn,1990\nBo,1980\nCy,1970\n")
    (tmp_path / "knows.csv").write_text("a,b,since\nAnn,Cy,2020\nCy,Bo,\n")
    found = omnigraph.infer_schema([tmp_path / "people.csv", tmp_path / "knows.csv"])
    assert "edge Know: Person -> Person {\n  since: I64?\n  @key(src, dst)\n}" in found.schema
    (tmp_path / "capitals.csv").write_text("city,mayor,founded\nOslo,Ann,1048\nBergen,Cy,1070\n")
    found = omnigraph.infer_schema([tmp_path / "people.csv", tmp_path / "capitals.csv"])
    assert "node Capital {\n  city: String @key\n" in found.schema


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
        (["2024-02-29T00:00"], "DateTime"),
        (["2023-02-29"], "String"),
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
    with pytest.raises(SourceUnusable, match="from CSV, TSV, Parquet, Arrow IPC and JSON Lines"):
        omnigraph.infer_schema(tmp_path / "x.bin")
    (tmp_path / "x.jsonl").write_text("{}\n{")
    with pytest.raises(SourceUnusable, match="line 2 is not JSON"):
        omnigraph.infer_schema(tmp_path / "x.jsonl")


AWKWARD: dict[str, tuple[dict[str, bytes], list[str]]] = {
    "another delimiter": ({"things.csv": b"k;v\na;1\n"}, ["k: String @key", "v: I64"]),
    "marks of missing values": (
        {"things.csv": b"k,v,s\na,1,NA\nb,NA,x\nc,-,y\n"},
        ["k: String @key", "v: I64?", "s: String?"],
    ),
    "ragged rows": ({"things.csv": b"k,v\na,1\nb\n"}, ["k: String @key", "v: I64"]),
    "a name on two lines": ({"things.csv": b'k,"v\nw"\na,1\n'}, ["v_w: I64"]),
    "a header alone": ({"things.csv": b"k,v"}, ["k: String? // no row has a value"]),
    "times without a zone": ({"things.csv": b"k,t\na,2024-01-01 10:00:00\n"}, ["t: DateTime // times without"]),
    "objects": ({"things.jsonl": b'{"k":"a","o":{"b":1}}\n'}, ["k: String @key", "// o: struct<b: int64> has no"]),
    "files by year": ({"flights-2015.csv": b"k,v\n1,1\n", "flights-2016.csv": b"k,v\n2,1.5\n"}, ["v: F64"]),
    "other files with numbers": ({"t1.csv": b"k\n1\n", "t2.csv": b"j\n2\n"}, ["node T1 {", "node T2 {"]),
}


@pytest.mark.parametrize("case", AWKWARD)
def test_what_is_proposed_from_awkward_files_loads_them(tmp_path: Path, case: str) -> None:
    files, told = AWKWARD[case]
    (tmp_path / "data").mkdir()
    for name, content in files.items():
        (tmp_path / "data" / name).write_bytes(content)
    found = omnigraph.infer_schema(tmp_path / "data")
    for text in told:
        assert text in found.schema
    (tmp_path / "map.yaml").write_text(found.mapping(tmp_path), encoding="utf-8")
    sources = read_map(tmp_path / "map.yaml")
    graph = omnigraph.init(tmp_path / "g.omni", found.schema)
    done = graph.load(nodes=dict(sources.nodes), edges=dict(sources.edges), mode="append", skip_bad=True)
    assert done.total_entities == sum(max(0, content.count(b"\n") - 1) for content in files.values()) - {
        "ragged rows": 1,
        "a name on two lines": 1,
        "objects": -1,
    }.get(case, 0)


def test_a_column_that_is_there_twice(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("k,k\n1,2\n", encoding="utf-8")
    with pytest.raises(SourceUnusable, match="a column is there twice: k, k"):
        omnigraph.infer_schema(tmp_path / "x.csv")


def test_columns_of_arrow_however_they_are_held(tmp_path: Path) -> None:
    texts = pa.array(["a", "b"])
    rows = pa.table(
        {
            "k": texts.cast(pa.string_view()),
            "c": texts.dictionary_encode(),
            "r": pc.run_end_encode(texts),
            "m": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
            "n": pa.array([[[1]]] * 2),
        }
    )
    plain = rows.select(["k", "c"])
    for name, packed in (("things.arrow", False), ("more.parquet.gz", True)):
        sink = pa.BufferOutputStream()
        if packed:
            pq.write_table(plain, sink)
        else:
            with pa.ipc.new_file(sink, plain.schema) as writer:
                writer.write_table(plain)
        content = bytes(sink.getvalue())
        (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
        assert "k: String @key\n  c: String\n" in omnigraph.infer_schema(tmp_path / name).schema
    found = omnigraph.infer_schema({"Thing": rows})
    assert "k: String @key\n  c: String\n  r: String\n  // m: map<" in found.schema
    graph = omnigraph.init(tmp_path / "g.omni", found.schema)
    assert graph.load(nodes=found.nodes, mode="append").total_entities == 2
