"""Random conditions of random reads: comparisons, memberships, null tests and searches, with their operands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final

from tests.read.computing import Computing
from tests.read.graphs import (
    DIRECTIONS,
    LISTS,
    VALUES,
    VECTORS,
    WORDS,
    PropertyPlan,
    Record,
    TypePlan,
    random_value,
)
from tests.read.query_parts import Variable

FAMILIES: Final = {
    "text": "string",
    "name": "string",
    "enum": "string",
    "bool": "bool",
    "i32": "number",
    "i64": "number",
    "u32": "number",
    "u64": "number",
    "f32": "number",
    "f64": "number",
    "date": "date",
    "datetime": "datetime",
}
"""The plain kinds, by what they can be compared with."""

_LARGE: Final = ("16777217", str(2**53), str(2**53 + 1))
_NUMBERS: Final = ("-2", "-0.5", "-0.0", "0", "1", "3", "3.0", "0.1", "2.5", *_LARGE)
_PARAMETERS: Final[dict[str, Sequence[tuple[str, Sequence[Any]]]]] = {
    "string": (("String", (*VALUES["name"], *WORDS)),),
    "bool": (("Bool", (True, False)),),
    "number": (
        ("I32", (-2, 0, 1, 3)),
        ("I64", (-2, 0, 2**53 + 1, "3")),
        ("U32", (0, 3)),
        ("U64", (1, 2**53 + 1)),
        ("F32", (0.5, 3)),
        ("F64", (-0.0, 0.1, 2.5, 3, 2.0**53)),
    ),
    "date": (("Date", VALUES["date"]),),
    "datetime": (("DateTime", VALUES["datetime"]),),
}
_UNSPELLABLE: Final = ("1e+300", str(2**64 - 1))
_SYMBOLS: Final = ("=", "=", "!=", "<", "<=", ">", ">=")


class Operands:
    """Makes conditions, and collects the parameters they use."""

    def __init__(self, random: Random, records: Sequence[Record]) -> None:
        self.random = random
        self.parameters: dict[str, tuple[str, Any]] = {}
        self.stored: dict[tuple[str, str], list[Any]] = {}
        for record in records:
            for name, value in record["data"].items():
                self.stored.setdefault((record.get("type") or record["edge"], name), []).append(value)

    def parameter(self, kind: str, value: Any) -> str:
        """A new parameter with a value."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = (kind, value)
        return f"${name}"

    def nullable(self, kind: str, value: Any) -> str:
        """A new parameter that may be null, and sometimes is."""
        if self.random.random() < 0.3:
            return self.parameter(f"{kind}?", None if self.random.random() < 0.5 else value)
        return self.parameter(kind, value)

    def literal(self, kind: str) -> str:
        """A literal to compare a value of that kind with."""
        if FAMILIES[kind] == "number":
            return self.random.choice(_NUMBERS)
        return spelled(FAMILIES[kind], random_value(self.random, kind))

    def known(self, entity: TypePlan, prop: PropertyPlan) -> str:
        """A literal for a property or its items, most often one that is stored."""
        kind = LISTS.get(prop.kind, prop.kind)
        stored = self.stored.get((entity.name, prop.name), [])
        if prop.kind in LISTS:
            stored = [item for items in stored for item in items]
        if not stored or self.random.random() < 0.25:
            return self.literal(kind)
        found = spelled(FAMILIES[kind], self.random.choice(stored))
        return self.literal(kind) if found in _UNSPELLABLE else found

    def scalar(self, kind: str) -> str:
        """A literal, a parameter, or the present."""
        chance = self.random.random()
        if kind == "datetime" and chance < 0.2:
            return "now()"
        if chance < 0.6:
            return self.literal(kind)
        declared, values = self.random.choice(_PARAMETERS[FAMILIES[kind]])
        return self.nullable(declared, self.random.choice(values))

    def items(self, kind: str) -> str:
        """A list of values, none of them null."""
        count = self.random.randint(0, 3)
        if self.random.random() < 0.6:
            return f"[{', '.join(self.literal(kind) for _ in range(count))}]"
        declared, values = self.random.choice(_PARAMETERS[FAMILIES[kind]])
        return self.nullable(f"[{declared}]", [self.random.choice(values) for _ in range(count)])

    def matches(self, node: TypePlan) -> str:
        """The entries of a binding, if any."""
        properties = [prop for prop in node.properties if prop.kind != "blob"]
        chosen = self.random.sample(properties, min(len(properties), self.random.choice((0, 0, 0, 1, 1, 2))))
        entries = [f"{prop.name}: {self._entry(node, prop)}" for prop in chosen]
        if properties and self.random.random() < 0.12:
            me = Variable("me", node)
            written = self.condition(me, [me], mentions=True)
            if "$me " not in written:
                entries.append(written.replace("$me.", ""))
        return f" {{ {', '.join(entries)} }}" if entries else ""

    def _entry(self, node: TypePlan, prop: PropertyPlan) -> str:
        if prop.kind in ("vector", "meaning"):
            return self.vector(prop.kind)
        if prop.kind in LISTS or self.random.random() < 0.7:
            return self.known(node, prop)
        return self.scalar(prop.kind)

    def vector(self, kind: str) -> str:
        """A vector as a literal or a parameter."""
        value = self.random.choice(VECTORS if kind == "vector" else DIRECTIONS)
        if self.random.random() < 0.5:
            return str(value)
        return self.nullable(f"Vector({len(value)})", value)

    def words(self) -> str:
        """A text to search for, which may say a word twice."""
        text = " ".join(self.random.choices(WORDS, k=self.random.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 3))))
        return f'"{text}"' if self.random.random() < 0.6 else self.nullable("String", text)

    def condition(self, variable: Variable, scope: Sequence[Variable], mentions: bool = False) -> str:
        """A condition, which ``mentions`` the variable if that matters; now and then one made of two."""
        if self.random.random() < 0.2:
            first, second = self._single(variable, scope, True), self._single(variable, scope, mentions)
            return self.random.choice(
                (
                    f"({first}) or ({second})",
                    f"({first}) and not ({second})",
                    f"not (({first}) or ({second}))",
                    f"case when {first} then {second} else true end",
                )
            )
        return self._single(variable, scope, mentions)

    def _single(self, variable: Variable, scope: Sequence[Variable], mentions: bool) -> str:
        if not mentions and self.random.random() < 0.04:
            return f"{self.nullable('I32', 1)} is {self.random.choice(('', 'not '))}null"
        if self.random.random() < 0.06:
            return f"${variable.name} is {self.random.choice(('', 'not '))}null"
        alike = [one.name for one in scope if one.type == variable.type]
        if alike and self.random.random() < 0.06:
            return f"${variable.name} {self.random.choice(('=', '!='))} ${self.random.choice(alike)}"
        columns = variable.columns()
        if not columns:
            return f"${variable.name} is not null"
        if self.random.random() < 0.25:
            made = Computing(
                self.random, [variable, *self.random.sample(list(scope), min(1, len(scope)))]
            ).condition()
            if not mentions or f"${variable.name}." in made:
                return made
        searchable = [prop for prop in columns if prop.kind == "text"] if variable.is_node else []
        prop = self.random.choice(searchable if searchable and self.random.random() < 0.4 else columns)
        return self.random.choice(list(self._forms(variable, prop, scope)))

    def equality(self, variable: Variable, scope: Sequence[Variable]) -> str | None:
        """A property equal to one of another variable, most often of the same kind; None if none can be."""
        sides = [
            (f"${variable.name}.{prop.name}", other)
            for prop in variable.columns()
            if prop.kind in FAMILIES
            for other in _alike(prop.kind, scope)
        ]
        if not sides:
            return None
        pair = list(self.random.choice(sides))
        self.random.shuffle(pair)
        return " = ".join(pair)

    def _forms(self, variable: Variable, prop: PropertyPlan, scope: Sequence[Variable]) -> Iterator[str]:
        """Conditions on a property, one of which is taken."""
        left = f"${variable.name}.{prop.name}"
        yield f"{left} is null"
        yield f"{left} is not null"
        if prop.kind in ("vector", "meaning"):
            return
        if prop.kind in LISTS:
            item = LISTS[prop.kind]
            yield f"{left} contains {self.scalar(item)}"
            yield f"{left} contains {self.known(variable.type, prop)}"
            others = list(_alike(item, scope))
            if others:
                yield f"{left} contains {self.random.choice(others)}"
                yield f"{self.random.choice(others)} in {left}"
            return
        yield f"{left} {self.random.choice(_SYMBOLS)} {self.scalar(prop.kind)}"
        for _ in range(3):
            yield f"{left} {self.random.choice(_SYMBOLS)} {self.known(variable.type, prop)}"
        yield f"{left} {self.random.choice(_SYMBOLS)} {self.random.choice(list(_alike(prop.kind, scope)))}"
        turned = self.scalar(prop.kind)
        if not turned.startswith("-"):
            yield f"{turned} {self.random.choice(_SYMBOLS)} {left}"
        for computed in computations(self.random, left, prop.kind):
            other = computed.replace(left, self.known(variable.type, prop))
            yield f"{computed} {self.random.choice(_SYMBOLS)} {other}"
        yield f"{left} not in {self.items(prop.kind)}"
        yield f"{left} in {self.items(prop.kind)}"
        yield f"{self.items(prop.kind)} contains {left}"
        yield f"[{', '.join(self.known(variable.type, prop) for _ in range(3))}] contains {left}"
        for _ in range(3 if prop.kind == "text" else FAMILIES[prop.kind] == "string"):
            yield from self._about_text(left, variable, scope)
        if prop.kind == "text" and variable.is_node:
            yield from (self._fuzzy(left) for _ in range(9))

    def _about_text(self, left: str, variable: Variable, scope: Sequence[Variable]) -> Iterator[str]:
        other = self.random.choice(list(_alike("name", scope)))
        yield f"{left} {self.random.choice(('contains', 'starts_with'))} {self.scalar('name')}"
        yield f"{left} {self.random.choice(('contains', 'starts_with'))} {other}"
        yield f'"{random_value(self.random, "text")}" contains {left}'
        if not variable.is_node:
            return
        yield f"{self.random.choice(('search', 'match_text'))}({left}, {self.words()})"
        yield f"search({left}, {self.words()}) {self.random.choice(('= false', '!= true', '= true'))}"
        yield f"false = search({left}, {self.words()})"
        yield self._fuzzy(left)

    def _fuzzy(self, left: str) -> str:
        """A search for words that may be mistyped, by as many edits as are allowed or by one more."""
        words = self.random.choices(WORDS, k=self.random.choice((1, 1, 1, 2)))
        text = " ".join(mistyped(self.random, word, self.random.choice((0, 1, 1, 2))) for word in words)
        edits: object = self.random.choice((0, 1, 1, 2, None))
        if edits is None:
            return f'fuzzy({left}, "{text}")'
        return f'fuzzy({left}, "{text}", {edits if self.random.random() < 0.6 else self.parameter("I32", edits)})'


def computations(random: Random, left: str, kind: str) -> Iterator[str]:
    """Values computed from a property, each of which exists whatever the property is."""
    match FAMILIES[kind]:
        case "number":
            yield f"({left} * 0.5 + 1)"
            yield f"abs({left} * 1.0)"
            yield f"floor({left} / 2.5)"
        case "string":
            yield f'(lower({left}) + "a")'
            yield f"length({left}) % 3"
            yield f"substring({left}, {random.randint(-1, 3)}, 2)"
        case "date" | "datetime":
            yield f"year({left}) * 12 + month({left})"
            yield f'date_trunc("{random.choice(("year", "quarter", "month", "day"))}", {left})'
        case _:
            yield f"(not {left})"


def mistyped(random: Random, word: str, mistakes: int) -> str:
    """A word with neighbours in the wrong order, or with a letter too few, too many or wrong."""
    for _ in range(mistakes):
        place = random.randrange(len(word) - 1)
        before, one, other, behind = word[:place], word[place], word[place + 1], word[place + 2 :]
        middle = random.choice((other + one, other + one, one, one + other + other, "x" + other))
        word = before + middle + behind
    return word


def spelled(family: str, value: Any) -> str:
    """A JSON value as a literal."""
    match family:
        case "bool":
            return "true" if value else "false"
        case "string":
            return f'"{value}"'
        case "number":
            return str(value)
        case _:
            return f'{family}("{value}")'


def _alike(kind: str, scope: Sequence[Variable]) -> Iterator[str]:
    """The properties in scope that can be compared with a kind."""
    for variable in scope:
        for prop in variable.columns():
            if FAMILIES.get(prop.kind) == FAMILIES[kind]:
                yield f"${variable.name}.{prop.name}"
