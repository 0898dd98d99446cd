"""Texts of any size, one family for each way in which work could grow faster than the text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isqrt
from typing import Final

Family = Callable[[int], str]


def _lines(template: str) -> Callable[[int], str]:
    """That many lines; `#` is the number of the line."""
    return lambda n: "\n".join(template.replace("#", str(i)) for i in range(n))


def _join(*parts: str | Callable[[int], str]) -> Family:
    return lambda n: "\n".join(part if isinstance(part, str) else part(n) for part in parts)


def _interfaces_times_nodes(n: int) -> str:
    side = isqrt(n)
    interfaces = "\n".join(f"interface I{i} {{ p{i}: I32 }}" for i in range(side))
    implements = ", ".join(f"I{i}" for i in range(side))
    return interfaces + "\n" + "\n".join(f"node N{i} implements {implements} {{}}" for i in range(side))


SCHEMAS: Final[Mapping[str, Family]] = {
    "nodes": _lines("node N# { p: I32 }"),
    "properties": _join("node N {", _lines("p#: I32? @index"), "}"),
    "properties on one line": lambda n: "node N { " + " ".join(f"p{i}: I32" for i in range(n)) + " }",
    "the same property": _join("node N {", _lines("p: I32"), "}"),
    "the same node": _lines("node N { p: I32 }"),
    "edges in all spellings": _join("node N {}", _lines("edge E: N -> N"), _lines("edge e#: N -> N")),
    "unknown endpoints": _join(_lines("node Node# {}"), _lines("edge E#: Nodes# -> Nod#")),
    "unknown interfaces": _join(_lines("interface Face# {}"), _lines("node N# implements Fac# {}")),
    "unknown types": _join("node N {", _lines("p#: Strin"), "}"),
    "many interfaces": lambda n: (
        "\n".join(f"interface I{i} {{ p{i}: I32 }}" for i in range(n))
        + "\nnode N implements "
        + ", ".join(f"I{i}" for i in range(n))
        + " {}"
    ),
    "many interfaces that disagree": lambda n: (
        "\n".join(f"interface I{i} {{ p{i}: I32  q: String }}" for i in range(n))
        + "\nnode N implements "
        + ", ".join(f"I{i}" for i in range(n))
        + " { q: I64 }"
    ),
    "one interface of many nodes": _join(
        'interface I { e: enum(a, b) @description("x") }', _lines("node N# implements I { e: enum(c) }")
    ),
    "interfaces times nodes": _interfaces_times_nodes,
    "one interface again and again": lambda n: (
        "interface I { "
        + " ".join(f"p{i}: I32" for i in range(n))
        + " }\nnode N implements "
        + ", ".join(["I"] * n)
        + " {}"
    ),
    "constraints": _join("node N { p: I32 q: I32", _lines("@unique(p, q)"), _lines("@range(p, #..)"), "}"),
    "keys beside other constraints": _join("node N {", _lines("p#: I32 @index"), _lines("@key(p#)"), "}"),
    "unknown columns": _join("node N {", _lines("prop#: I32"), _lines("@unique(prob#)"), "}"),
    "columns of one constraint": lambda n: (
        "node N { "
        + " ".join(f"p{i}: I32" for i in range(n))
        + " @unique("
        + ", ".join(f"p{i}" for i in range(n))
        + ") }"
    ),
    "checks of one column": _join("node N { p: String", _lines('@check(p, "a#")'), "}"),
    "annotations": _join("node N", _lines("@note#(1, k=2)"), "{ p: I32", _lines("@note#"), "}"),
    "repeated annotations": _join("node N", _lines('@description("x")'), "{ p: I32", _lines("@index"), "}"),
    "members of an enum": lambda n: "node N { e: enum(" + ", ".join(f"v{i}" for i in range(n)) + ") }",
    "a large enum in many constraints": lambda n: (
        "node N { e: enum("
        + ", ".join(f"v{i}" for i in range(n))
        + ")\n"
        + "\n".join(["@key(e)\n@check(e, 1)"] * n)
        + "}"
    ),
    "unknown embed sources": _join("node N {", _lines("p#: Vector(2) @embed(q#)"), "}"),
    "rename hints": _join("node N {", _lines('p#: I32 @rename_from("q#")'), "}"),
    "open blocks": _lines("node N# {"),
    "closing braces": _lines("}"),
    "stray characters": _lines("; ' #"),
    "stray characters on one line": lambda n: "; " * n,
    "unclosed brackets": lambda n: "node N { p: " + "[" * n,
    "comments": _join("node N {", _lines("// #\n/* # */ p#: I32 // #"), "}"),
    "long strings": lambda n: f'node N @description("{"x" * 10 * n}") {{}}',
    "bad escapes": lambda n: 'node N @description("' + "\\x" * n + '") {}',
}

_READ = "query q() { match { $a: A"
_RETURN = "} return { $a.k } }"

QUERIES: Final[Mapping[str, Family]] = {
    "queries": _lines("query q#($x: I32) { match { $a: A } return { $a.k } }"),
    "the same query": _lines("query q() { match { $a: A } return { $a.k } }"),
    "parameters": lambda n: (
        "query q("
        + ", ".join(f"$p{i}: I32" for i in range(n))
        + ") { match { $a: A "
        + " ".join(f"$a.n = $p{i}" for i in range(n))
        + _RETURN
    ),
    "the same parameter": lambda n: "query q(" + ", ".join(["$p: I32"] * n) + ") { match { $a: A" + _RETURN,
    "unknown parameter types": lambda n: (
        "query q(" + ", ".join(f"$p{i}: Strin" for i in range(n)) + f") {{ match {{ $a: A {_RETURN}"
    ),
    "bindings": _join(_READ, _lines("$v#: A"), _lines('$v#: A { k: "x" }'), _RETURN),
    "a chain of traversals": _join(
        _READ, "$a e $v0", lambda n: "\n".join(f"$v{i} e $v{i + 1}" for i in range(n)), _RETURN
    ),
    "a star of traversals": _join(_READ, _lines("$a $e#:e $v#"), _RETURN),
    "cycles": _join(_READ, _lines("$a e $a\n$_ e $a"), _RETURN),
    "traversals without a start": _join("query q() { match {", _lines("$x# e $y#"), "} return { $x0.k } }"),
    "unknown edges": _join(_READ, _lines("$a f# $b"), _RETURN),
    "unknown types": _join(_READ, _lines("$v#: B"), _RETURN),
    "unknown properties": _join(_READ, _lines("$a.x# = 1"), _RETURN),
    "unknown variables": _join(_READ, _lines("$v#: A"), _lines("$w#.n = $z#"), _RETURN),
    "comparisons with an enum": _join(_READ, _lines('$a.s = "x"'), _RETURN),
    "negations over many variables": _join(_READ, _lines("$v#: A"), _lines("not { $v# e $w  $w.n = 1 }"), _RETURN),
    "negations without a variable": _join(_READ, _lines("not { $w#: A }"), _RETURN),
    "optional blocks": _join(_READ, _lines("optional { $a e $v# }"), _lines("$v#.n = 1"), _RETURN),
    "optional blocks that need each other": _join(
        _READ,
        "$a e $c0",
        lambda n: "\n".join(f"optional {{ $c{i} e $b{i} }} $b{i} e $c{i + 1}" for i in range(n)),
        _RETURN,
    ),
    "optional blocks in optional blocks": _join(
        _READ, lambda n: "\n".join("optional { $a e $_ " * 20 + "}" * 20 for _ in range(n // 20)), _RETURN
    ),
    "blocks nested too deeply": _join(_READ, lambda n: "not { $a e $_ " * n + "}" * n, _RETURN),
    "lists nested too deeply": _join(_READ, lambda n: "$a.n = " + "[" * n + "]" * n, _RETURN),
    "calls nested too deeply": lambda n: "query q() { match { $a: A } return { " + "count(" * n + ")" * n + " } }",
    "items of a list": _join(_READ, lambda n: "$a.n in [" + ", ".join(["1"] * n) + "]", _RETURN),
    "projections": lambda n: (
        "query q() { match { $a: A } return { "
        + ", ".join(f"$a.n as c{i}" for i in range(n))
        + " } order { "
        + ", ".join(f"c{i}" for i in range(n))
        + " } }"
    ),
    "unknown aliases": lambda n: (
        "query q() { match { $a: A } return { "
        + ", ".join(f"$a.n as col{i}" for i in range(n))
        + " } order { "
        + ", ".join(f"cal{i}" for i in range(n))
        + " } }"
    ),
    "inserts": _join("query q() {", _lines('insert A { k: "k#", n: 1 }'), "}"),
    "incomplete inserts": _join("query q() {", _lines("insert A { n: 1 }"), "}"),
    "deletes": _join("query q() {", _lines('delete A where k = "k#"'), "}"),
    "updates of unknown properties": _join("query q() {", _lines("update A set { m#: 1 } where o = $p"), "}"),
    "assignments": _join("query q() { insert A {", _lines("n: #"), "} }"),
    "conditions": lambda n: "query q() { delete A where " + " and ".join(["n = 1"] * n) + " }",
    "bad clauses": _join(_READ, _lines("$a.n ="), _RETURN),
    "bad clauses on one line": lambda n: _READ + " $a.n = ," * n + _RETURN,
    "bad queries": _lines("query q#( { match { } return { } }"),
    "open blocks": _join(_READ, _lines("not {")),
    "closing braces": _join(_READ, _lines("}")),
    "comments": _join(_READ, _lines("// #\n$v#: A /* # */ // #"), _RETURN),
}


def wide_schema(n: int) -> str:
    """The schema for the queries, with that many properties, enum values and edges."""
    properties = "\n".join(f"p{i}: I32?\nr{i}: I32" for i in range(n))
    members = ", ".join(f"v{i}" for i in range(n))
    edges = "\n".join(f"edge E{i}: A -> A" for i in range(n))
    return f"node A {{ k: String @key n: I32? s: enum({members}) {properties} }}\nedge E: A -> A\n{edges}\n"
