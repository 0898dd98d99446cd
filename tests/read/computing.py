"""Random computed expressions of a kind: every row of the function table, `case`, conditions and durations.

What a function takes is read from its row in the table, so that a new one is asked about too. Some operands are
tamed, because a query whose value does not exist has no answer to compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from tests.read.query_parts import Variable

from omnigraph.lang.query.functions.signature import CLOCK_UNITS, UNITS, Function, Kind
from omnigraph.lang.query.functions.table import FUNCTIONS
from omnigraph.lang.values import BOOL, DATE, DATETIME, F64, I64, STRING, Scalar, ValueType

CATEGORIES: Final = {
    "text": "text",
    "name": "text",
    "enum": "text",
    "bool": "bool",
    "i32": "integer",
    "i64": "integer",
    "u32": "integer",
    "u64": "integer",
    "f32": "float",
    "f64": "float",
    "date": "date",
    "datetime": "datetime",
    "names": "texts",
}
"""What expressions make of the kinds of properties."""
PLAIN: Final = ("integer", "float", "text", "bool", "date", "datetime")
_CONSTANTS: Final[Mapping[str, Sequence[str]]] = {
    "integer": ("0", "1", "3", "-7", "2"),
    "float": ("0.5", "2.0", "-1.25", "3.0"),
    "text": ('"a"', '"B"', '""', '"ä b"', '"red"'),
    "bool": ("true", "false"),
    "date": ('date("2000-02-29")', 'date("1969-12-31")'),
    "datetime": ('datetime("1969-07-20T20:17:40Z")', 'datetime("2024-02-29T12:30:00.001Z")'),
    "texts": ('["a", "b"]', '["red"]'),
}
_TAKEN: Final[Mapping[Kind, Sequence[str]]] = {
    Kind.TEXT: ("text",),
    Kind.INTEGER: ("integer",),
    Kind.NUMBER: ("integer", "float"),
    Kind.BOOL: ("bool",),
    Kind.DATE: ("date",),
    Kind.MOMENT: ("date", "datetime"),
    Kind.LIST: ("texts",),
    Kind.PLAIN: PLAIN,
    Kind.NUMERAL: ("integer", "float", "bool"),
    Kind.CALENDAR: ("date", "datetime"),
}
_TYPES: Final[Mapping[str, ValueType]] = {
    "integer": I64,
    "float": F64,
    "text": STRING,
    "bool": BOOL,
    "date": DATE,
    "datetime": DATETIME,
    "texts": ValueType(Scalar.STRING, is_list=True),
}
_TAMED: Final = {
    "sqrt": "abs({})",
    "ln": "abs({}) + 1.0",
    "exp": "({}) % 20.0",
    "power": "({}) % 10",
    "date_add": "({}) % 100",
    "abs": "({}) % 100000",
    "round": "({}) % 100000",
}
"""Operands for which there is a value, of functions that do not have one for all numbers."""
_EXACT: Final = frozenset({"to_string"})
"""Functions of the last digit of a float, which is computed from none."""
_MOMENTS: Final = ("date", "datetime")


class Computing:
    """Makes expressions from the properties of some variables."""

    def __init__(self, random: Random, scope: Sequence[Variable]) -> None:
        self.random = random
        self.leaves: dict[str, list[str]] = {}
        for variable in scope:
            for prop in variable.columns():
                if prop.kind in CATEGORIES:
                    place = self.leaves.setdefault(CATEGORIES[prop.kind], [])
                    place.append(f"${variable.name}.{prop.name}")

    def of(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind: a leaf, a constant, or something computed."""
        if depth <= 0 or self.random.random() < 0.15:
            return self._leaf(kind)
        form = self.random.random()
        if form < 0.12:
            return self._chosen(kind, depth)
        match kind:
            case "bool" if form < 0.75:
                return self.condition(depth)
            case "integer" | "float" if form < 0.5:
                return self._arithmetic(kind, depth)
            case "text" if form < 0.3:
                return f"({self.of('text', depth - 1)} + {self.of('text', depth - 1)})"
            case "date" | "datetime" if form < 0.5:
                return self._moved(kind, depth)
        return self._call(kind, depth)

    def any(self, depth: int = 2) -> tuple[str, str]:
        """An expression of a kind of which there is a property, and that kind."""
        kind = self.random.choice([one for one in PLAIN if self.leaves.get(one)] or ["integer"])
        return self.of(kind, depth), kind

    def condition(self, depth: int = 2) -> str:
        """A condition of any form."""
        form = self.random.randrange(9)
        if form == 0:
            word = self.random.choice((" and ", " or ", " and ", " or "))
            parts = [f"({self.of('bool', depth - 1)})" for _ in range(self.random.choice((2, 2, 3)))]
            return f"({word.join(parts)})"
        if form == 1:
            return f"not ({self.of('bool', depth - 1)})"
        kind = self.random.choice(PLAIN)
        left = self.of(kind, depth - 1)
        if form == 2:
            return f"({left}) is {self.random.choice(('', 'not '))}null"
        if form == 3:
            items = ", ".join(self.random.choices(_CONSTANTS[kind], k=self.random.randint(0, 3)))
            return f"({left}) {self.random.choice(('in', 'not in'))} [{items}]"
        if form == 4:
            operator = self.random.choice(("contains", "starts_with", "not contains", "not starts_with"))
            return f"({self.of('text', depth - 1)}) {operator} ({self.of('text', depth - 1)})"
        if form == 5:
            texts, text = self.of("texts", depth - 1), self.of("text", depth - 1)
            return self.random.choice(
                (f"has({texts}, {text})", f"({text}) in {texts}", f"{texts} contains ({text})")
            )
        operator = self.random.choice(("=", "!=", "<", "<=", ">", ">="))
        return f"({left}) {operator} ({self.of(kind, depth - 1)})"

    def _leaf(self, kind: str) -> str:
        known = self.leaves.get(kind)
        if kind == "float" and not known:
            known = self.leaves.get("integer")
        if not known or self.random.random() < 0.2:
            return self.random.choice(_CONSTANTS[kind])
        leaf = self.random.choice(known)
        return f"({leaf} % 1000)" if kind == "integer" and self.random.random() < 0.6 else leaf

    def _chosen(self, kind: str, depth: int) -> str:
        one, other = self.of(kind, depth - 1), self.of(kind, depth - 1)
        form = self.random.randrange(4)
        if form == 0 or kind == "texts":
            return f"coalesce({one}, {other})"
        if form == 1:
            return f"nullif({one}, {other})"
        last = self.random.choice((f" else {other}", f" when {self.condition(depth - 1)} then {other}", ""))
        return f"case when {self.condition(depth - 1)} then {one}{last} end"

    def _arithmetic(self, kind: str, depth: int) -> str:
        if self.random.random() < 0.15:
            return f"-({self.of(kind, depth - 1)})"
        one, other = self.of(kind, depth - 1), self.of(self.random.choice((kind, "integer")), depth - 1)
        operator = self.random.choice(("+", "-", "*", "/", "%"))
        if operator in ("/", "%") and self.random.random() < 0.9:
            other = f"nullif({other}, 0)"
        return f"(({one}) {operator} ({other}))"

    def _moved(self, kind: str, depth: int) -> str:
        units = [unit for unit in UNITS if kind == "datetime" or unit not in CLOCK_UNITS]
        amount, unit = self.random.choice((1, 1, 2, 13)), self.random.choice(units)
        duration = f"{amount} {unit if amount == 1 else f'{unit}s'}"
        moment = self.of(kind, depth - 1)
        if self.random.random() < 0.2:
            return self.random.choice((f"(({moment}) + {duration})", f"({duration} + ({moment}))"))
        return f"(({moment}) - {duration})"

    def _call(self, kind: str, depth: int) -> str:
        """A call of a function that gives the kind, whatever it takes."""
        name = self.random.choice(_GIVING[kind])
        row, moment = FUNCTIONS[name], self.random.choice(_MOMENTS)
        if kind in _MOMENTS and name != "to_date" and name != "to_datetime":
            moment = kind
        count = row.least if self.random.random() < 0.5 else row.most or row.least + self.random.randint(0, 2)
        number = kind if kind in ("integer", "float") else self.random.choice(("integer", "float"))
        operands = [self._operand(row, row.parameter(at).kind, number, moment, depth - 1) for at in range(count)]
        return f"{name}({', '.join(operands)})"

    def _operand(self, row: Function, wanted: Kind, number: str, moment: str, depth: int) -> str:
        if wanted is Kind.UNIT:
            clock = moment == "datetime" or row.name == "date_diff"
            return f'"{self.random.choice([one for one in UNITS if clock or one not in CLOCK_UNITS])}"'
        if wanted is Kind.PATTERN:
            return self.random.choice(('"a"', '"b"', '" "', '"ä"'))
        kinds = _TAKEN[wanted]
        kind = number if number in kinds and wanted is Kind.NUMBER else self.random.choice(kinds)
        kind = moment if wanted is Kind.MOMENT else kind
        made = self._leaf(kind) if row.name in _EXACT else self.of(kind, depth)
        return _TAMED[row.name].format(made) if row.name in _TAMED and kind in ("integer", "float") else made


def _giving() -> dict[str, list[str]]:
    """The functions that give a kind, for some of the operands that they take."""
    found: dict[str, list[str]] = {}
    for name, row in FUNCTIONS.items():
        if row.compute is None:
            continue
        for variant in (0, -1):
            types = [
                STRING if one.kind in (Kind.UNIT, Kind.PATTERN) else _TYPES[_TAKEN[one.kind][variant]]
                for one in row.parameters
                if not one.optional
            ]
            result = row.result(types).required()
            kind = next((one for one, known in _TYPES.items() if known == result), None)
            if kind is not None and name not in found.setdefault(kind, []):
                found[kind].append(name)
    return found


_GIVING: Final = _giving()
