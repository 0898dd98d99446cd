"""Errors that cross the wire arrive as they were sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.test_errors import ERRORS

from omnigraph.errors import OmniError, RequestError, ServerFailed
from omnigraph.messages.failures import failure_body, raised_from, status_of


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_arrives_as_it_was_sent(error: OmniError) -> None:
    body = json.loads(json.dumps(failure_body(error, "r1")))
    again = raised_from(status_of(error), body)
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error)
    assert body["error"]
    assert body["code"]
    assert body["request_id"] == "r1"


def unknown(name: str, *arguments: object) -> dict[str, Any]:
    """The body of an error that this release does not have."""
    return {"error": "x", "exception": {"$": "error", "type": name, "arguments": list(arguments)}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (502, None, ServerFailed),
        (502, [], ServerFailed),
        (500, {"error": "x"}, ServerFailed),
        (400, {"error": "x"}, RequestError),
        (409, unknown("NewConflict"), RequestError),
        (409, unknown("ManifestConflict", 1), RequestError),
        (400, unknown("annotations"), RequestError),
        (400, unknown("Conflict"), RequestError),
        (400, unknown("RequestError", {"$": "os"}), RequestError),
    ],
)
def test_an_answer_that_is_no_error_of_ours_is_one_nevertheless(
    status: int, body: object, kind: type[OmniError]
) -> None:
    assert type(raised_from(status, body)) is kind
