"""What can be read over HTTP, and in which forms."""

from __future__ import annotations

import gzip
import io
import json

import pyarrow as pa
from tests.server.running import NAMES, Served

ARROW = "application/vnd.apache.arrow.stream"
NDJSON = "application/x-ndjson"
AGES = """query ages($least: I32) {
  match { $p: Person  $p.age >= $least }
  return { $p.name as name, $p.born as born }
}"""


def test_a_query_answers_as_the_command_line_does(served: Served) -> None:
    found = served.ask("/query", {"query": AGES, "params": {"least": 30}})
    head = served.ask("/snapshot")["graph_commit_id"]
    assert found == {
        "query_name": "ages",
        "target": {"branch": "main"},
        "row_count": 2,
        "columns": ["name", "born"],
        "rows": [{"born": "1815-12-10", "name": "ada"}, {"born": None, "name": "bob"}],
        "graph_commit_id": head,
    }


def test_a_result_can_be_lines_or_arrow(served: Served) -> None:
    lines = served.request("POST", "/graphs/default/query", {"query": NAMES}, Accept=NDJSON)
    assert [json.loads(line) for line in lines.content.splitlines()] == [{"name": "ada"}, {"name": "bob"}]
    stream = served.request("POST", "/graphs/default/query", {"query": NAMES}, Accept=f"{ARROW}, */*;q=0.1")
    assert stream.headers["content-type"] == ARROW
    assert json.loads(stream.headers["omnigraph-result"])["query_name"] == "names"
    assert pa.ipc.open_stream(io.BytesIO(stream.content)).read_all().to_pydict() == {"name": ["ada", "bob"]}


def test_answers_are_packed_for_callers_that_take_them_so(served: Served) -> None:
    plain = served.request("GET", "/openapi.json")
    packed = served.request("GET", "/openapi.json", Accept_Encoding="gzip, br")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    smallest = served.request("GET", "/openapi.json", Accept_Encoding="gzip, zstd")
    assert smallest.headers["content-encoding"] == "zstd"
    unpacked = pa.CompressedInputStream(pa.BufferReader(smallest.content), "zstd").read()
    assert unpacked == plain.content


def test_an_export_is_what_a_load_takes_back(served: Served) -> None:
    everything = served.request("POST", "/graphs/default/export", {"ordered": True})
    assert everything.headers["content-type"] == NDJSON
    records = [json.loads(line) for line in everything.content.splitlines()]
    assert [record.get("type", record.get("edge")) for record in records] == ["Person", "Person", "Knows"]
    some = served.request("POST", "/graphs/default/export", {"type_names": ["Knows"]}, Accept_Encoding="gzip")
    assert json.loads(gzip.decompress(some.content))["data"]["id"] == "k1"


def test_the_schema_the_commits_and_a_commit(served: Served) -> None:
    assert "node Person" in served.ask("/schema")["schema_source"]
    newest, *_ = served.ask("/commits?limit=1")["commits"]
    assert served.ask(f"/commits/{newest['graph_commit_id']}") == newest
    older = served.ask(f"/commits?after={newest['graph_commit_id']}")["commits"]
    assert [each["graph_commit_id"] for each in older] == newest["parents"]
    assert served.ask("/entity?type=Person&id=ada")["entity"]["born"] == "1815-12-10"
    assert served.ask("/entity?type=Person&id=zoe") == {"entity": None}


def test_an_older_state_can_be_read_by_its_commit_or_version(served: Served) -> None:
    first = served.ask("/commits")["commits"][-1]
    for state in (first["graph_commit_id"], first["manifest_version"]):
        assert served.ask("/query", {"query": NAMES, "snapshot": state})["row_count"] == 0
    assert served.ask(f"/snapshot?snapshot={first['manifest_version']}")["manifest_version"] == 1


def test_changes_come_in_pages_with_a_cursor(served: Served) -> None:
    page = served.ask("/changes?start=beginning&kind=edge")
    assert [change["id"] for block in page["blocks"] for change in block["changes"]] == ["k1"]
    assert page["caught_up"]
    again = served.ask(f"/changes?kind=edge&cursor={page['cursor']}")
    assert again["blocks"] == []
    newest = served.ask("/commits?limit=1")["commits"][0]["graph_commit_id"]
    changed = served.ask(f"/commits/{newest}/changes?op=insert&type=Person&limit=1")
    assert len(changed["changes"]) == 1
    assert changed["next_page_token"]


def test_a_baseline_ends_with_the_cursor_for_what_follows(served: Served) -> None:
    *records, last = served.request(
        "POST", "/graphs/default/changes/baseline", {"kind": ["node"]}
    ).content.splitlines()
    assert len(records) == 2
    cursor = json.loads(last)["baseline"]["resume_cursor"]
    assert served.ask(f"/changes?kind=node&cursor={cursor}")["blocks"] == []


def test_explain_shows_the_steps(served: Served) -> None:
    assert "Person" in served.ask("/explain", {"query": NAMES})["plan"]


def test_health_readiness_and_graphs(served: Served) -> None:
    assert served.request("GET", "/healthz", actor=None).json["status"] == "ok"
    assert served.request("GET", "/readyz", actor=None).json == {"status": "ready"}
    (only,) = served.request("GET", "/graphs").json["graphs"]
    assert only["graph_id"] == "default"


def test_metrics_count_requests_by_route(served: Served) -> None:
    served.ask("/schema")
    text = served.request("GET", "/metrics").content.decode()
    line = 'omnigraph_http_requests_total{method="GET",route="/graphs/{graph}/schema",status="200"}'
    assert any(each.startswith(line) for each in text.splitlines())
    assert "omnigraph_http_requests_in_flight 1" in text
