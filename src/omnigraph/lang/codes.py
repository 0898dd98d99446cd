"""The registry of codes: every diagnostic either language can produce, with its one-line meaning.

The codes ``T…``, ``Q000``, ``L201`` and ``OG-…`` are a published contract; ``P…``, ``S…``, ``C…``, ``Q1…`` and
``L3…`` are ours for what that contract leaves without a code.
"""

from __future__ import annotations

from typing import Final

SYNTAX: Final = {
    "P001": "unexpected token",
    "P002": "malformed string, comment or character",
    "P003": "number out of range",
    "P004": "text too large or nested too deeply",
    "P005": "file is not UTF-8",
}

SCHEMA: Final = {
    "S101": "`implements` names an unknown interface",
    "S102": "a property does not have the type its interface requires",
    "S110": "annotation not allowed here",
    "S111": "annotation value missing, blank or of the wrong form",
    "S112": "annotation repeated",
    "S113": "`@embed` target or source is not fit for it",
    "S120": "constraint names an unknown property",
    "S121": "constraint not allowed on this kind of type",
    "S122": "constraint does not fit the property's type",
    "S123": "more than one key",
    "S124": "constraint arguments malformed",
    "S125": "reserved property name",
    "S126": "enum value repeated",
    "S127": "regular expression does not compile",
    "S128": "regular expression that would be matched in another sense than it was written",
    "C201": "node type declared twice",
    "C202": "edge type declared twice",
    "C203": "edge endpoint is not a node type",
    "C204": "edge names differ only in letter case",
    "C205": "interface declared twice",
    "C206": "property declared twice",
    "C207": "interfaces contribute different properties of one name",
    "C208": "schema too large",
    "M301": "rename hint names nothing in the accepted schema",
    "M302": "rename hint crosses kinds or owners",
    "M303": "two declarations claim one old name",
}

TYPES: Final = {
    "T1": "unknown node type in a binding",
    "T2": "unknown property in a binding",
    "T3": "literal does not fit the property",
    "T4": "unknown edge",
    "T5": "endpoint variable does not fit the edge",
    "T6": "variable not bound, or property unknown",
    "T7": "incompatible comparison or assignment",
    "T8": "aggregate argument of the wrong type",
    "T9": "negation without an outer variable, or a projection that cannot be a group key",
    "T10": "unknown mutation type, or nothing assigned",
    "T11": "unknown property in a mutation, or Blob in a where",
    "T12": "insert misses a required property or endpoint",
    "T13": "property assigned twice",
    "T14": "mutation value is a variable that is no parameter",
    "T15": "bad hop bounds, or bad operands of nearest",
    "T16": "update of the ends of an edge",
    "T17": "nearest ordering without limit",
    "T18": "nearest ordering together with an alias ordering",
    "T19": "operands of search or fuzzy",
    "T20": "operands of match_text or bm25",
    "T21": "operands of rrf, or rrf without limit",
    "T22": "undirected traversal over an asymmetric edge",
    "T23": "edge variable misused",
    "T24": "Blob as a read value",
    "T25": "operand of a function or of arithmetic of the wrong type",
    "T26": "values of a case or of coalesce without a shared type",
    "T27": "edges of one hop between other types",
}

QUERY: Final = {
    "Q000": "query file does not parse",
    "Q101": "unknown parameter type",
    "Q102": "parameter name reserved or declared twice",
    "Q103": "variable is neither a parameter nor bound",
    "Q104": "variable bound to two node types",
    "Q105": "list literal nested or of mixed types",
    "Q106": "a mutation where a read is needed, or a read where a mutation is needed",
    "Q107": "query not found, or not named where there are several",
    "Q108": "inserts or updates mixed with deletes",
    "Q109": "update of a key property",
    "Q110": "order names an alias that no projection has",
    "Q111": "expression cannot be ordered by",
    "Q112": "expression cannot be returned",
    "Q113": "score without an alias",
    "Q114": "limit or offset is not an integer",
    "Q115": "optional block shares no variable with its surroundings",
    "Q116": "query annotation repeated, blank or unknown",
    "Q117": "having without an aggregate",
    "Q118": "returns of a union with other columns",
}

LINT: Final = {
    "L201": "nullable property that no update query sets",
    "L301": "direction written on a ranking that has only one",
    "L302": "comparison that can never match",
    "L303": "two columns of one name",
}

MIGRATION: Final = {
    "OG-DS-101": "drop of a populated graph type",
    "OG-DS-102": "drop of a populated node type",
    "OG-DS-103": "drop of a populated edge type",
    "OG-DS-104": "drop of a populated property",
    "OG-DS-105": "drop of a populated vector property",
    "OG-MF-103": "required property added without a value for existing rows",
    "OG-MF-104": "nullable property made required",
    "OG-MF-106": "property type changed",
}

RESERVED: Final = frozenset({"OG-DS-101", "OG-DS-102", "OG-DS-103", "OG-DS-104", "OG-DS-105", "OG-MF-104"})
"""Published codes that are kept for later use: nothing reports them today."""

ALL: Final = SYNTAX | SCHEMA | TYPES | QUERY | LINT | MIGRATION
