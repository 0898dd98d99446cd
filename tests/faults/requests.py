"""Requests to an S3 server that obey rules: the server's side of `tests.faults.store`.

Rules and questions come in as requests themselves, below `/_faults/`.
"""

from __future__ import annotations

import io
import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import parse_qs, unquote

from tests.faults.waves import Waves

Environment = dict[str, Any]
Application = Callable[[Environment, Callable[..., Any]], Iterable[bytes]]

CONTROL: Final = "/_faults/"
_STATUS: Final = {
    "500": ("500 Internal Server Error", b"<Error><Code>InternalError</Code></Error>"),
    "503": ("503 Slow Down", b"<Error><Code>SlowDown</Code></Error>"),
    "refuse": ("403 Forbidden", b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"),
}
_FAMILIES: Final = {
    "CHANGE": ("PUT", "DELETE", "POST"),
    "ANY": ("HEAD", "GET", "PUT", "DELETE", "LIST", "POST"),
}


class Copies(Protocol):
    """Keeps copies of all objects whose keys begin alike."""

    def save(self, prefix: str) -> None: ...
    def restore(self, prefix: str) -> None: ...


@dataclass(slots=True)
class _Rule:
    """What is asked for, and how often it has been seen and has struck."""

    method: str
    key: re.Pattern[str]
    occurrence: int
    action: str
    seconds: float
    sticky: bool
    seen: int = 0
    fired: int = 0


@dataclass(slots=True)
class _Faults:
    """The rules, the requests that are still on their way, and the journal."""

    application: Application
    copies: Copies
    rules: list[_Rule] = field(default_factory=list)
    late: list[Environment] = field(default_factory=list)
    journal: list[dict[str, Any]] = field(default_factory=list)
    mutex: threading.Lock = field(default_factory=threading.Lock)
    waves: Waves | None = None

    def serve(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        if environ["PATH_INFO"].startswith(CONTROL):
            answer = json.dumps(self._control(environ["PATH_INFO"].removeprefix(CONTROL), body)).encode()
            start_response("200 OK", [("Content-Length", str(len(answer)))])
            return [answer]
        method, key = _asked(environ, body)
        environ["omnigraph.wave"] = 0 if self.waves is None else self.waves.wait()
        rule = self._struck_by(method, key)
        if rule is None:
            return self._apply(environ, start_response, "")
        if rule.action == "stall":
            time.sleep(rule.seconds)
            return self._apply(environ, start_response, "stall")
        if rule.action in _STATUS:
            self._note(environ, rule.action, rule.action)
            status, content = _STATUS[rule.action]
            start_response(status, [("Content-Type", "text/xml"), ("Content-Length", str(len(content)))])
            return [b"" if method == "HEAD" else content]
        if rule.action == "lost":
            self._apply(environ, _nobody_hears, "lost")
        else:
            self._note(environ, "", "late")
            with self.mutex:
                self.late.append(environ)
            if rule.seconds:
                threading.Timer(rule.seconds, self.release).start()
        raise ConnectionAbortedError

    def release(self) -> int:
        """Let what is still on its way arrive."""
        with self.mutex:
            arriving, self.late = self.late, []
        for environ in arriving:
            self._apply(environ, _nobody_hears, "arrived")
        return len(arriving)

    def _apply(self, environ: Environment, start_response: Callable[..., Any], fault: str) -> list[bytes]:
        status = ""

        def hear(given: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            nonlocal status
            status = given
            return start_response(given, headers, *rest)

        answer = list(self.application(environ, hear))
        self._note(environ, status, fault)
        return answer

    def _struck_by(self, method: str, key: str) -> _Rule | None:
        with self.mutex:
            for rule in self.rules:
                if method in _FAMILIES.get(rule.method, (rule.method,)) and rule.key.fullmatch(key):
                    rule.seen += 1
                    if rule.seen == rule.occurrence or (rule.sticky and rule.seen > rule.occurrence):
                        rule.fired += 1
                        return rule
        return None

    def _note(self, environ: Environment, status: str, fault: str) -> None:
        method, key = environ["omnigraph.asked"]
        with self.mutex:
            entry = {"method": method, "key": key, "status": status.partition(" ")[0], "fault": fault}
            self.journal.append(entry | {"wave": environ["omnigraph.wave"]})

    def _control(self, verb: str, body: bytes) -> Any:
        if verb == "release":
            return self.release()
        if verb in ("save", "restore"):
            return getattr(self.copies, verb)(json.loads(body)["prefix"])
        with self.mutex:
            if verb == "waves":
                quiet = json.loads(body)["quiet"]
                self.waves = Waves(quiet) if quiet else None
                return None
            if verb == "arm":
                given = json.loads(body)
                self.rules.append(_Rule(**{**given, "key": _expression(given["key"])}))
                return len(self.rules) - 1
            if verb == "disarm":
                fired = [rule.fired for rule in self.rules]
                self.rules.clear()
                return fired
            if verb == "forget":
                self.journal.clear()
                self.late.clear()
                return None
            return self.journal


def faulty(application: Application, copies: Copies) -> Application:
    """A store that obeys rules."""
    return _Faults(application, copies).serve


def _expression(glob: str) -> re.Pattern[str]:
    return re.compile(
        re.escape(glob).replace(r"\*\*", "\0").replace(r"\*", "[^/]*").replace("\0", ".*"), re.DOTALL
    )


def _asked(environ: Environment, body: bytes) -> tuple[str, str]:
    """Method and key. Listing is a method of its own; deleting many is known by the first of their keys."""
    _, _, path = environ["PATH_INFO"].lstrip("/").partition("/")
    query = parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True)
    method = environ["REQUEST_METHOD"]
    if not path and method == "GET":
        method, path = "LIST", query.get("prefix", [""])[0].rstrip("/")
    elif not path and method == "POST" and "delete" in query:
        first = re.search(rb"<Key>([^<]*)</Key>", body)
        method, path = "DELETE", first[1].decode() if first else ""
    environ["omnigraph.asked"] = method, unquote(path)
    return environ["omnigraph.asked"]  # type: ignore[no-any-return]


def _nobody_hears(status: str, headers: list[tuple[str, str]], *rest: Any) -> None:
    """The reply of a request whose sender is gone."""
