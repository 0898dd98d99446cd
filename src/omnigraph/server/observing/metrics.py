"""Counters of a server process, in the text form that Prometheus reads."""

from __future__ import annotations

import json
import os
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """What a server has done since it started. It is used by the event loop only.

    Workers behind one address share a ``folder``: each keeps its counts there, and each tells the sum of all. The
    counts of a worker that has died stay.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.in_flight = 0
        self._folder = folder
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, list[int]] = {}
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._received = 0
        self._sent = 0

    def note(self, method: str, route: str, status: int, seconds: float, received: int, sent: int) -> None:
        """Count one request that was answered."""
        self._requests[method, route, status] += 1
        counts = self._seconds.setdefault(route, [0] * (len(_BOUNDS) + 1))
        counts[bisect_left(_BOUNDS, seconds)] += 1
        self._sums[route] += seconds
        self._received += received
        self._sent += sent

    def text(self) -> str:
        """All counters as Prometheus reads them."""
        return "\n".join(self._of_all()._lines()) + "\n"

    def save(self) -> None:
        """Keep the counts where the other workers find them."""
        if self._folder is None:
            return
        counts = {
            "process": os.getpid(),
            "in_flight": self.in_flight,
            "requests": [[*each, count] for each, count in self._requests.items()],
            "seconds": self._seconds,
            "sums": self._sums,
            "bytes": [self._received, self._sent],
        }
        draft = self._folder / f".{os.getpid()}"
        draft.write_text(json.dumps(counts))
        draft.replace(self._folder / f"{os.getpid()}.json")

    def _of_all(self) -> Metrics:
        """The sum of the counts of all workers."""
        if self._folder is None:
            return self
        self.save()
        total = Metrics()
        for path in sorted(self._folder.glob("*.json")):
            total._add(json.loads(path.read_text()))
        return total

    def _add(self, counts: dict[str, Any]) -> None:
        if Path(f"/proc/{counts['process']}").exists():
            self.in_flight += counts["in_flight"]
        for method, route, status, count in counts["requests"]:
            self._requests[method, route, status] += count
        for route, found in counts["seconds"].items():
            before = self._seconds.get(route, [0] * len(found))
            self._seconds[route] = [one + other for one, other in zip(before, found, strict=True)]
            self._sums[route] += counts["sums"][route]
        self._received += counts["bytes"][0]
        self._sent += counts["bytes"][1]

    def _lines(self) -> Iterator[str]:
        yield "# HELP omnigraph_http_requests_total Requests answered, by route and status."
        yield "# TYPE omnigraph_http_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{method}",route="{route}",status="{status}"'
            yield f"omnigraph_http_requests_total{{{labels}}} {count}"
        yield "# HELP omnigraph_http_request_seconds Seconds from a request to the end of its answer."
        yield "# TYPE omnigraph_http_request_seconds histogram"
        for route, counts in sorted(self._seconds.items()):
            total = 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), counts, strict=True):
                total += count
                yield f'omnigraph_http_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'omnigraph_http_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}'
            yield f'omnigraph_http_request_seconds_count{{route="{route}"}} {total}'
        yield "# HELP omnigraph_http_requests_in_flight Requests that are being answered."
        yield "# TYPE omnigraph_http_requests_in_flight gauge"
        yield f"omnigraph_http_requests_in_flight {self.in_flight}"
        yield "# HELP omnigraph_http_bytes_total Bytes of bodies, received and sent."
        yield "# TYPE omnigraph_http_bytes_total counter"
        yield f'omnigraph_http_bytes_total{{direction="received"}} {self._received}'
        yield f'omnigraph_http_bytes_total{{direction="sent"}} {self._sent}'
