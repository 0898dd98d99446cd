"""The parameters of routes, which are read from the path, the query string, the headers and a JSON body.

The same descriptions make the OpenAPI document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final

from omnigraph.arguments import described, seconds_argument, shortened, text_argument, unique_members
from omnigraph.errors import InvalidArgument, RequestError


class Place(StrEnum):
    """Where a parameter stands in a request."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    BODY = "body"


class Kind(StrEnum):
    """What a parameter is."""

    TEXT = "text"
    TEXTS = "texts"
    NUMBER = "number"
    SECONDS = "seconds"
    FLAG = "flag"
    OBJECT = "object"
    OBJECTS = "objects"
    STATE = "state"


SCHEMAS: Final[Mapping[Kind, Mapping[str, Any]]] = {
    Kind.TEXT: {"type": "string"},
    Kind.TEXTS: {"type": "array", "items": {"type": "string"}},
    Kind.NUMBER: {"type": "integer"},
    Kind.SECONDS: {"type": "number", "exclusiveMinimum": 0},
    Kind.FLAG: {"type": "boolean"},
    Kind.OBJECT: {"type": "object"},
    Kind.OBJECTS: {"type": "array", "items": {"type": "object"}},
    Kind.STATE: {"oneOf": [{"type": "string"}, {"type": "integer"}]},
}
_LONGEST_NUMBER: Final = 18
_DEEPEST: Final = 64


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a route. ``choices`` are the texts that it can be."""

    name: str
    kind: Kind
    place: Place
    help: str
    required: bool = False
    choices: Sequence[str] = ()
    filled: bool = False
    """Is an empty text a mistake?"""

    @property
    def key(self) -> str:
        """Its name among the values of a call."""
        return self.name.lower().replace("-", "_")

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        known = {**SCHEMAS[self.kind], "description": self.help}
        if not self.choices:
            return known
        chosen = {"enum": list(self.choices)}
        return {**known, "items": {"type": "string", **chosen}} if self.kind is Kind.TEXTS else {**known, **chosen}

    def checked(self, value: object) -> Any:
        """A JSON value that is what it should be; InvalidArgument if it is not."""
        match self.kind:
            case Kind.TEXT:
                return self._chosen(value)
            case Kind.TEXTS:
                if not isinstance(value, list):
                    raise InvalidArgument(self.name, f"it is a list of texts, not {described(value)}")
                return [self._chosen(each) for each in value]
            case Kind.NUMBER if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 63:
                raise InvalidArgument(self.name, f"it is a whole number, not {described(value)}")
            case Kind.SECONDS:
                return seconds_argument(self.name, value)
                return float(value)
            case Kind.FLAG if not isinstance(value, bool):
                raise InvalidArgument(self.name, f"it is true or false, not {described(value)}")
            case Kind.OBJECT if not isinstance(value, dict):
                raise InvalidArgument(self.name, f"it is an object, not {described(value)}")
            case Kind.OBJECTS:
                if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                    raise InvalidArgument(self.name, f"it is a list of objects, not {described(value)}")
            case Kind.STATE if isinstance(value, bool) or not isinstance(value, int | str):
                raise InvalidArgument(self.name, f"it is a text or a manifest version, not {described(value)}")
        return value

    def _chosen(self, value: object) -> str:
        """A text that is one of the choices, if there are some."""
        text = text_argument(self.name, value)
        if self.choices and text not in self.choices:
            raise InvalidArgument(self.name, f"'{shortened(text)}' is none of {', '.join(self.choices)}")
        if self.filled and not text.strip():
            raise InvalidArgument(self.name, "it is empty; leave it out, or give a value")
        return text

    def parsed(self, given: Sequence[str]) -> Any:
        """The value that texts of a path, a query string or a header stand for."""
        if self.kind is Kind.TEXTS:
            return self.checked(list(given))
        if len(given) > 1:
            raise InvalidArgument(self.name, f"it is given {len(given)} times; give it once")
        text = given[0]
        if self.kind is Kind.FLAG:
            if text not in ("true", "false"):
                raise InvalidArgument(self.name, f"it is true or false, not '{shortened(text)}'")
            return text == "true"
        if self.kind in (Kind.NUMBER, Kind.STATE) and len(text) <= _LONGEST_NUMBER:
            digits = text.removeprefix("-") if self.kind is Kind.NUMBER else text
            if digits.isascii() and digits.isdecimal():
                return int(text)
        if self.kind is Kind.NUMBER:
            raise InvalidArgument(self.name, f"it is a whole number, not '{shortened(text)}'")
        return self.checked(text)


def parse_query(known: Iterable[Parameter], pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of a query string, in which every name must be known."""
    named = {each.name: each for each in known if each.place is Place.QUERY}
    given: dict[str, list[str]] = {}
    for name, value in pairs:
        given.setdefault(_known(name, named, "the query string"), []).append(value)
    return {named[name].key: named[name].parsed(values) for name, values in given.items()}


def parse_body(known: Iterable[Parameter], content: bytes) -> dict[str, Any]:
    """The values of a JSON body, in which every member must be known; null stands for a value that is left out."""
    named = {each.name: each for each in known if each.place is Place.BODY}
    body = _json(content) if content.strip() else {}
    if not isinstance(body, dict):
        raise RequestError(f"the body is a JSON object, not {described(body)}")
    given = {_known(name, named, "the body"): value for name, value in body.items() if value is not None}
    return {named[name].key: named[name].checked(value) for name, value in given.items()}


def require_all(known: Iterable[Parameter], values: Mapping[str, Any]) -> None:
    """Raise InvalidArgument for a required parameter that is left out."""
    for each in known:
        if each.required and each.key not in values:
            raise InvalidArgument(each.name, f"it is missing; give it in the {each.place.value}")


def _known(name: str, named: Mapping[str, Parameter], where: str) -> str:
    if name in named:
        return name
    near = get_close_matches(name, named, n=1)
    remedy = f"did you mean '{near[0]}'?" if near else f"it can have {', '.join(named) or 'nothing'}"
    raise InvalidArgument(shortened(name), f"{where} of this route does not have it; {remedy}")


def _json(content: bytes) -> object:
    """JSON that is not nested so deeply that working on it would exhaust the stack."""
    try:
        value = json.loads(content, object_pairs_hook=unique_members, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RequestError(f"the body is not JSON: {shortened(reason)}") from None
    level: list[object] = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return value
    raise RequestError(f"the body is nested more than {_DEEPEST} levels deep")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")
