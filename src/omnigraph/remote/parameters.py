"""The values of a query's parameters, as they are sent to a server.

JSON has no bytes, dates or numbers of NumPy, and writes some of them as texts. A server could not tell those from
texts, so such values are compared with the parameters' types here, where the query's text is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InvalidArgument, QueryError
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.values import ValueType


def sent_parameters(text: object, name: object, params: object) -> Any:
    """The values to send. ParameterError, as of an embedded graph, if one does not fit its parameter."""
    if params is None or (isinstance(params, dict) and _is_json(params)):
        return params
    declared = _declared(text, name)
    if declared is None:  # the server says what is wrong with the query
        return json_parameters(params)
    query, types = declared
    given: Any = params
    bound = bind_parameters(query, types, given)
    return {key: value for key, value in bound.items() if key in given}


def json_parameters(params: object) -> Any:
    """The values to send of parameters whose types only the server knows."""
    if params is not None and not isinstance(params, Mapping):
        raise InvalidArgument("params", f"it has values by name, and is no {type(params).__name__}")
    return params


def _declared(text: object, name: object) -> tuple[str, dict[str, ValueType]] | None:
    """The name of the query that is meant, and the types of its parameters; None if it cannot be told."""
    if not isinstance(text, str):
        return None
    try:
        queries = parse_query_file(text).queries
    except QueryError:
        return None
    meant = [query for query in queries if name is None or query.name.text == name]
    if len(meant) != 1:
        return None
    types: dict[str, ValueType] = {}
    for parameter in meant[0].parameters:
        if parameter.type is None:
            return None
        types[parameter.name.text] = parameter.type
    return meant[0].name.text, types


def _is_json(value: object) -> bool:
    """Is a value what JSON has, so that a server gets the very same?"""
    match value:
        case None | bool() | str():
            return True
        case int() | float():
            return type(value) in (int, float) and value - value == 0
        case list() | tuple():
            return all(_is_json(each) for each in value)
        case dict():
            return all(isinstance(key, str) and _is_json(each) for key, each in value.items())
        case _:
            return False
