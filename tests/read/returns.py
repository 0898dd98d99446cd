"""Random results of random reads: columns, groups, orders, rankings and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from tests.read.computing import PLAIN, Computing
from tests.read.conditions import FAMILIES, Operands, computations
from tests.read.query_parts import Block, Query, Variable

_NUMERIC: Final = frozenset(kind for kind, family in FAMILIES.items() if family == "number")
_COMPARABLE: Final = frozenset(kind for kind, family in FAMILIES.items() if family != "bool")
_LITERALS: Final = ("7", "-0.5", "true", '"x"', 'date("2024-02-29")')


@dataclass(frozen=True)
class _Column:
    """A projection. ``key`` is how `order` may name it; ``ranking`` what needs a limit, or what does not mix."""

    text: str
    key: str | None = None
    ranking: str = ""


def random_return(random: Random, scope: Sequence[Variable], operands: Operands) -> Query:
    """Everything behind `match`, for the variables it binds."""
    return _Returns(random, scope, operands).result()


Matched = tuple[tuple[str | Block, ...], Sequence[Variable]]
"""Clauses, and the variables that they bind."""


def random_union(random: Random, parts: Sequence[Matched], operands: Operands) -> Query:
    """Some reads with the same columns: ids, properties of one kind, values computed alike, and constants."""
    columns: list[tuple[Sequence[str], bool]] = []
    kinds = [_properties_by_kind(scope) for _, scope in parts]
    shared = sorted(set.intersection(*(set(one) for one in kinds)))
    for _ in range(random.randint(1, 3)):
        chance = random.random()
        if shared and chance < 0.6:
            kind = random.choice(shared)
            columns.append(([random.choice(one[kind]) for one in kinds], kind in FAMILIES))
        elif chance < 0.8:
            kind = random.choice(PLAIN)
            columns.append(([Computing(random, scope).of(kind) for _, scope in parts], True))
        else:
            nodes = [[v.name for v in scope] for _, scope in parts]
            columns.append(([f"${random.choice(one)}" for one in nodes], True))
    reads = [
        Query(matched[0], tuple(f"{texts[side]} as c{i}" for i, (texts, _) in enumerate(columns)))
        for side, matched in enumerate(parts)
    ]
    plain = [f"c{i}" for i, (_, has_order) in enumerate(columns) if has_order]
    order = tuple(f"{key}{random.choice(('', ' desc'))}" for key in plain if random.random() < 0.7)
    limit = random.choice((None, "2", "5", operands.parameter("I64", 3))) if order else None
    offset = random.choice((None, "1")) if limit else None
    whole, repeats = reads[-1], random.random() < 0.4
    for read in reversed(reads[:-1]):
        whole = replace(read, united=whole, repeats=repeats)
    return replace(whole, order=order, limit=limit, offset=offset)


def _properties_by_kind(scope: Sequence[Variable]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for variable in scope:
        for prop in variable.columns():
            found.setdefault(prop.kind, []).append(f"${variable.name}.{prop.name}")
    return found


class _Returns:
    def __init__(self, random: Random, scope: Sequence[Variable], operands: Operands) -> None:
        self.random = random
        self.scope = scope
        self.nodes = [variable for variable in scope if variable.is_node]
        self.operands = operands

    def result(self) -> Query:
        chance = self.random.random()
        if chance < 0.3:
            return self._grouped()
        if chance < 0.45:
            return self._plain(distinct=True)
        return self._plain()

    def _plain(self, distinct: bool = False) -> Query:
        columns = [self._column(i) for i in range(self.random.randint(1, 4))]
        rankings = list(self._rankings())
        if rankings and self.random.random() < 0.5:
            columns.append(self._score(self.random.choice(rankings), len(columns)))
        order = [key for key in self._keys(columns) if self.random.random() < 0.5]
        if not distinct:
            order += [f"{key}{self._direction()}" for key in self._properties(self.random.choice((0, 0, 1, 2)))]
        self.random.shuffle(order)
        first = None
        if rankings and not distinct and self.random.random() < 0.4:
            first = self.random.choice(rankings)
            aliases = {column.key for column in columns}
            if first.startswith("nearest"):
                order = [key for key in order if key.split()[0] not in aliases]
            order = [first, *order]
        ranked = [c.ranking for c in columns if any(key.split()[0] == c.key for key in order)]
        needs_limit = any(c.ranking == "rrf" for c in columns) or any(one in ("nearest", "rrf") for one in ranked)
        needs_limit = needs_limit or (first is not None and not first.startswith("bm25"))
        return self._paged(columns, order, distinct, needs_limit)

    def _grouped(self) -> Query:
        columns = [self._key_column(i) for i in range(self.random.choice((0, 1, 1, 2)))]
        if self.random.random() < 0.05:
            columns.append(_Column(f"{self.operands.nullable('String', 'x')} as c{len(columns)}"))
        for _ in range(self.random.randint(1, 3)):
            made, place = self._aggregate(), len(columns)
            is_list = made.startswith("collect")
            if self.random.random() < 0.3:
                made, is_list = self._of_groups(made), False
            columns.append(_Column(f"{made} as c{place}", None if is_list else f"c{place}"))
        order = [key for key in self._keys(columns) if self.random.random() < 0.5]
        self.random.shuffle(order)
        if self.random.random() < 0.15:
            order.append(
                f"{self.random.choice(('count(*)', 'count(*) % 2', self._ordered_aggregate()))}{self._direction()}"
            )
        paged = self._paged(columns, order, distinct=self.random.random() < 0.1, needs_limit=False)
        return replace(paged, having=self._having(columns)) if self.random.random() < 0.2 else paged

    def _having(self, columns: Sequence[_Column]) -> str:
        """A condition on groups: on aggregates, on columns by their aliases, or on both."""
        conditions = [
            "count(*) > 1",
            "count(*) % 2 = 1 or count(*) > 3",
            f"{self._ordered_aggregate()} is not null",
        ]
        for column in columns:
            if column.key is not None:
                conditions += [f"{column.key} is not null", f"{column.key} is null or count(*) > 1"]
        return "  ".join(self.random.sample(conditions, self.random.choice((1, 1, 2))))

    def _ordered_aggregate(self) -> str:
        """An aggregate whose values have an order."""
        made = self._aggregate()
        return "count(*)" if made.startswith("collect") else made

    def _of_groups(self, made: str) -> str:
        """Something computed from an aggregate."""
        if made.startswith("collect"):
            return self.random.choice((f"size({made})", f"first({made})", f"size({made}) * 2 - count(*)"))
        forms = [f"coalesce({made}, {made}) is null", f"case when count(*) > 1 then {made} end"]
        if made.startswith(("count", "sum", "avg", "median", "percentile")):
            forms += [f"{made} / count(*)", f"-({made} / 2) + 1", f"{made} * 1.0 - 0.5"]
        return self.random.choice(forms)

    def _paged(self, columns: Sequence[_Column], order: Sequence[str], distinct: bool, needs_limit: bool) -> Query:
        limit = offset = None
        if needs_limit or self.random.random() < (0.5 if order else 0.1):
            limit = self._count((0, 1, 2, 3, 5, 100))
            if self.random.random() < 0.4:
                offset = self._count((0, 1, 2, 7))
        return Query((), tuple(column.text for column in columns), distinct, tuple(order), limit, offset)

    def _count(self, choices: Sequence[int]) -> str:
        count = self.random.choice(choices)
        if self.random.random() < 0.7:
            return str(count)
        return self.operands.parameter(self.random.choice(("I32", "I64", "U32", "U64")), count)

    def _keys(self, columns: Sequence[_Column]) -> Iterator[str]:
        for column in columns:
            if column.key is not None:
                yield f"{column.key}{self._direction()}"

    def _direction(self) -> str:
        return self.random.choice(("", " asc", " desc"))

    def _properties(self, count: int) -> list[str]:
        """Some properties that have an order."""
        found = [
            f"${variable.name}.{prop.name}"
            for variable in self.scope
            for prop in variable.columns()
            if prop.kind in FAMILIES
        ]
        return [self.random.choice(found) for _ in range(count) if found]

    def _column(self, position: int) -> _Column:
        """A node, a property, or now and then something that is the same in all rows."""
        chance = self.random.random()
        alias = f"c{position}"
        if chance < 0.04:
            return _Column(f"{self.random.choice(_LITERALS)} as {alias}", alias)
        if chance < 0.08:
            return _Column(f"{self.operands.nullable('I64', 2**53 + 1)} as {alias}", alias)
        if chance < 0.25 and (computed := self._computed()) is not None:
            return _Column(f"{computed} as {alias}", alias)
        return self._key_column(position)

    def _computed(self) -> str | None:
        """Something computed from properties: from one, or from any number."""
        if self.random.random() < 0.6:
            return Computing(self.random, self.scope).any()[0]
        variable = self.random.choice(self.scope)
        columns = [prop for prop in variable.columns() if prop.kind in FAMILIES]
        if not columns:
            return None
        prop = self.random.choice(columns)
        return self.random.choice(list(computations(self.random, f"${variable.name}.{prop.name}", prop.kind)))

    def _key_column(self, position: int) -> _Column:
        """A node or a property, which may be the key of a group; without an alias it has the name of one."""
        alias = f"c{position}"
        variable = self.random.choice(self.scope)
        columns = variable.columns()
        if self.random.random() < 0.08:
            return _Column(self.random.choice((f"${variable.name}.*", f"${variable.name}.* as {alias}")))
        if not columns or self.random.random() < 0.25:
            return _Column(f"${variable.name} as {alias}", alias)
        prop = self.random.choice(columns)
        text, orderable = f"${variable.name}.{prop.name}", prop.kind in FAMILIES
        if self.random.random() < 0.4:
            return _Column(text, text if orderable else None)
        return _Column(f"{text} as {alias}", alias if orderable else None)

    def _aggregate(self) -> str:
        if self.random.random() < 0.05:
            same = self.random.choice(("7", "0.5", self.operands.nullable("I64", 3)))
            return f"{self.random.choice(('count', 'count', 'sum', 'avg', 'min', 'max'))}({same})"
        variable = self.random.choice(self.scope)
        columns = variable.columns()
        if not columns or self.random.random() < 0.3:
            return f"count({self.random.choice(('', 'distinct '))}${variable.name})"
        if self.random.random() < 0.15:
            return self._computed_aggregate()
        prop = self.random.choice(columns)
        functions = ["count", "count"]
        if self.random.random() < 0.1:
            return "count(*)"
        if prop.kind in _NUMERIC:
            functions += ["sum", "avg", "median", "percentile"]
            functions += ["stddev"]
        if prop.kind in _COMPARABLE:
            functions += ["min", "max", "collect"]
        function = self.random.choice(functions)
        distinct = "distinct " if function in ("count", "collect") and self.random.random() < 0.5 else ""
        if function == "percentile":
            return f"percentile(${variable.name}.{prop.name}, {self.random.choice(('0', '0.25', '0.9', '1'))})"
        return f"{function}({distinct}${variable.name}.{prop.name})"

    def _computed_aggregate(self) -> str:
        """An aggregate of something computed."""
        made, kind = Computing(self.random, self.scope).any()
        functions = ["count", "count", "collect", *(("min", "max") if kind != "bool" else ())]
        functions += ["sum", "avg", "median"] if kind in ("integer", "float") else []
        return f"{self.random.choice(functions)}({made})"

    def _rankings(self) -> Iterator[str]:
        """A ranking of each kind, for each variable that has something to rank by."""
        for variable in self.nodes:
            arms = []
            for prop in variable.columns():
                target = f"${variable.name}.{prop.name}"
                if prop.kind == "text" or (prop.kind in ("name", "enum") and self.random.random() < 0.3):
                    arms.append(f"bm25({target}, {self.operands.words()})")
                elif prop.kind in ("vector", "meaning"):
                    as_text = self.random.random() < (0.1 if prop.kind == "vector" else 0.5)
                    query = self.operands.words() if as_text else self.operands.vector(prop.kind)
                    arms.append(f"nearest({target}, {query})")
            yield from arms
            if arms:
                first, second = self.random.choice(arms), self.random.choice(arms)
                k = self.random.choice(("", ", 1", f", {self.operands.parameter('I64', 10)}"))
                yield f"rrf({first}, {second}{k})"

    def _score(self, ranking: str, position: int) -> _Column:
        alias = f"c{position}"
        return _Column(f"{ranking} as {alias}", alias, ranking.partition("(")[0])
