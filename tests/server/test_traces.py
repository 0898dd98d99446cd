"""Traces of requests, received by a real OTLP receiver over HTTP."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import urllib3
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.cli.command import COMMAND
from tests.server.running import ADD

from omnigraph.server.observing.traces import configured_traces

CALLER = "0af7651916cd43dd8448eb211c80319c"


@contextmanager
def receiving() -> Iterator[tuple[str, list[Span]]]:
    """A receiver of spans: its address, and all spans that it has got."""
    spans: list[Span] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent = ExportTraceServiceRequest()
            sent.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
            spans.extend(span for one in sent.resource_spans for two in one.scope_spans for span in two.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", spans
        server.shutdown()


def test_a_request_is_a_span_of_its_callers_trace(graph_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as (collector, spans):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector)
        monkeypatch.setenv("OMNIGRAPH_SERVER_BEARER_TOKENS_JSON", '{"ada": "secret"}')
        command = [*COMMAND, "serve", str(graph_place), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            address = process.stdout.readline().decode().strip().partition("=")[2]
            headers = {
                "Authorization": "Bearer secret",
                "traceparent": f"00-{CALLER}-b7ad6b7169203331-01",
                "X-Request-Id": "call-17",
            }
            body = {"query": ADD, "params": {"n": "cid"}}
            with urllib3.PoolManager() as pool:
                url = f"http://{address}/graphs/default/mutate"
                assert pool.request("POST", url, json=body, headers=headers, timeout=60).status == 200
            process.terminate()
            process.communicate(timeout=60)
    (span,) = spans
    assert span.name == "POST /graphs/{graph}/mutate"
    assert span.trace_id.hex() == CALLER
    told = {each.key: each.value for each in span.attributes}
    assert told["http.response.status_code"].int_value == 200
    assert told["omnigraph.actor"].string_value == "ada"
    assert told["omnigraph.request_id"].string_value == "call-17"
    assert "cid" not in str(span)


def test_without_an_address_nothing_is_traced() -> None:
    assert configured_traces({}) is None
    disabled = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}
    assert configured_traces(disabled) is None
