"""Queries that fit a fixed schema: whatever is drawn here must compile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from hypothesis import strategies as st

SCHEMA: Final = """
node Pilot {
  call: String @key
  hours: I32?
  rating: F64?
  born: Date?
  seen: DateTime
  tags: [String]?
  status: enum(active, retired)
  face: Vector(2)? @embed(call)
}
node Base { code: String @key  size: U64? }
edge Trusts: Pilot -> Pilot { since: Date?  weight: F32 }
edge StationedAt: Pilot -> Base { days: I64? }
"""

_ENDS: Final[Mapping[str, tuple[str, str]]] = {"trusts": ("Pilot", "Pilot"), "stationedAt": ("Pilot", "Base")}
_PROPERTIES: Final[Mapping[str, Mapping[str, str]]] = {
    "Pilot": {
        "call": "text",
        "hours": "number",
        "rating": "number",
        "born": "date",
        "seen": "instant",
        "tags": "texts",
        "status": "text",
    },
    "Base": {"code": "text", "size": "number"},
    "trusts": {"since": "date", "weight": "number"},
    "stationedAt": {"days": "number"},
}
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ('"active"', '"retired"', "$text"),
    "number": ("3", "-4.5", "$number", "$maybe"),
    "date": ('date("2024-02-29")',),
    "instant": ('datetime("2024-02-29T12:00:00Z")', "now()"),
    "texts": ('"active"', "$text"),
}
_PARAMETERS: Final = "$text: String, $texts: [String], $number: I64, $maybe: F64?, $vector: Vector(2)"


@dataclass
class _Names:
    """What is bound so far: each variable's type. Inner blocks start from a copy."""

    types: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def fresh(self, type_name: str) -> str:
        self.count += 1
        name = f"v{self.count}"
        self.types[name] = type_name
        return name

    def of(self, *types: str) -> list[str]:
        return [name for name, type_name in self.types.items() if not types or type_name in types]


@st.composite
def typed_reads(draw: st.DrawFn) -> str:
    """A read with every kind of clause, all of them on variables of the right type."""
    names = _Names()
    first = names.fresh(draw(st.sampled_from(["Pilot", "Base"])))
    clauses = [f"${first}: {names.types[first]}"]
    clauses += [draw(_clauses(names, 2)) for _ in range(draw(st.integers(0, 6)))]
    nodes = names.of("Pilot", "Base")
    shown = draw(st.lists(st.sampled_from(nodes), min_size=1, max_size=3))
    columns = [f"{draw(_projections(names, name))} as c{i}" for i, name in enumerate(shown)]
    distinct = draw(st.sampled_from(["", "distinct "]))
    order = draw(st.sampled_from(["", "order { c0 desc }", "order { c0 } limit $number offset 2"]))
    body = "\n    ".join(clauses)
    result = f"return {distinct}{{ {', '.join(columns)} }} {order}"
    return f"query q({_PARAMETERS}) {{\n  match {{\n    {body}\n  }}\n  {result}\n}}"


@st.composite
def _projections(draw: st.DrawFn, names: _Names, name: str) -> str:
    properties = [p for p, kind in _PROPERTIES[names.types[name]].items() if kind != "texts"]
    return draw(st.sampled_from([f"${name}", *(f"${name}.{p}" for p in properties)]))


@st.composite
def _clauses(draw: st.DrawFn, names: _Names, depth: int) -> str:
    kinds = ["binding", "rebinding", "traversal", "closing", "condition", "condition"]
    kind = draw(st.sampled_from([*kinds, "not", "optional", "optional"] if depth else kinds))
    if kind == "binding":
        type_name = draw(st.sampled_from(["Pilot", "Base"]))
        return draw(_bindings(names.fresh(type_name), type_name))
    if kind == "rebinding":
        name = draw(st.sampled_from(names.of("Pilot", "Base")))
        return draw(_bindings(name, names.types[name]))
    if kind == "traversal":
        return draw(_traversals(names))
    if kind == "closing":
        return draw(_closings(names))
    if kind == "condition":
        return draw(_conditions(names, draw(st.sampled_from(names.of()))))
    return draw(_blocks(names, kind, depth))


@st.composite
def _bindings(draw: st.DrawFn, name: str, type_name: str) -> str:
    matched = draw(st.lists(st.sampled_from(sorted(_PROPERTIES[type_name])), max_size=2, unique=True))
    values = [f"{p}: {draw(st.sampled_from(_VALUES[_PROPERTIES[type_name][p]]))}" for p in matched]
    return f"${name}: {type_name}" + (f" {{ {', '.join(values)} }}" if values else "")


@st.composite
def _traversals(draw: st.DrawFn, names: _Names) -> str:
    """From a bound variable, in either direction, to a new one; now and then with hops or an edge variable."""
    name = draw(st.sampled_from(names.of("Pilot", "Base")))
    edge = draw(st.sampled_from([e for e, ends in _ENDS.items() if names.types[name] in ends]))
    source, target = _ENDS[edge]
    written = draw(st.sampled_from([edge, edge.lower(), f"{edge}{{1,3}}", "$e:"]))
    if written == "$e:":
        written = f"${names.fresh(edge)}:{edge}"
    elif source == target and draw(st.booleans()):
        written = f"<{edge}>"
    other = "_" if draw(st.integers(0, 4)) == 0 else names.fresh(target if names.types[name] == source else source)
    ends = (name, other) if draw(st.booleans()) else (other, name)
    return f"${ends[0]} {written} ${ends[1]}"


@st.composite
def _closings(draw: st.DrawFn, names: _Names) -> str:
    """Between two variables that are bound already, or a loop."""
    pilots = st.sampled_from(names.of("Pilot") or [names.fresh("Pilot")])
    return f"${draw(pilots)} trusts ${draw(pilots)}"


@st.composite
def _conditions(draw: st.DrawFn, names: _Names, name: str) -> str:
    prop, kind = draw(st.sampled_from(sorted(_PROPERTIES[names.types[name]].items())))
    value = draw(st.sampled_from(_VALUES[kind]))
    forms = [f"${name}.{prop} is not null", f"${name}.{prop} is null"]
    if kind == "texts":
        forms.append(f"${name}.{prop} contains {value}")
    else:
        forms += [f"${name}.{prop} {op} {value}" for op in ("=", "!=", "<", ">=")]
    if kind == "text":
        forms += [f"${name}.{prop} in $texts", f'${name}.{prop} in ["a"]', f"$texts contains ${name}.{prop}"]
        forms += [f'${name}.{prop} starts_with "a"', f'["a"] contains ${name}.{prop}']
        if names.types[name] in ("Pilot", "Base"):
            forms += [f"search(${name}.{prop}, $text)", f'fuzzy(${name}.{prop}, "a", 1)']
    return draw(st.sampled_from(forms))


@st.composite
def _blocks(draw: st.DrawFn, names: _Names, kind: str, depth: int) -> str:
    """A block that begins at a variable from outside; what `optional` binds stays bound."""
    inner = _Names(dict(names.types), names.count)
    clauses = [draw(_conditions(inner, draw(st.sampled_from(names.of()))))]
    clauses += [draw(_clauses(inner, depth - 1)) for _ in range(draw(st.integers(0, 3)))]
    names.count = inner.count
    if kind == "optional":
        names.types.update(inner.types)
    return f"{kind} {{ {' '.join(clauses)} }}"
