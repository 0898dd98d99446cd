"""Counters of a server process, in the text form that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """What a server has done since it started. It is used by the event loop only."""

    def __init__(self) -> None:
        self.in_flight = 0
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
        return "\n".join(self._lines()) + "\n"

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
