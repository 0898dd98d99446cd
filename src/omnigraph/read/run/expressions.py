"""The values of expressions, for all rows of a frame at once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import EmbeddingUnavailable, ParameterError
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.table import may_fail
from omnigraph.read.pattern.pattern import mentioned
from omnigraph.read.run.frame import Frame
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Bools, Column, Floats
from omnigraph.read.values.comparing import Operand, Series, compare

if TYPE_CHECKING:
    from omnigraph.embed.client import EmbeddingClient


class Expressions:
    """Evaluates the expressions of one execution: its parameters are bound, `now()` is one moment."""

    def __init__(
        self, query: str, params: Mapping[str, Value], embedder: Callable[[], EmbeddingClient | None]
    ) -> None:
        self.query = query
        self.params = params
        self._embedder = embedder
        self._embedded: dict[tuple[str, int], Floats] = {}

    def holds(self, condition: ir.Filter, frame: Frame) -> Bools:
        """For which rows a condition is true; false and unknown are alike."""
        if may_fail(condition) and (live := _live(condition, frame)) is not None:
            held = np.zeros(frame.count, dtype=np.bool_)
            rows = np.flatnonzero(live)
            held[rows] = self.holds(condition, frame.take(rows))
            return held
        if isinstance(condition.left, ir.Call | ir.Filter) and condition.right == ir.TRUE:
            from omnigraph.read.run.computing import truth

            return truth(condition, frame, self).true
        right = None if condition.right is None else self.operand(condition.right, frame)
        return compare(condition.op, self.operand(condition.left, frame), right, frame.count)

    def operand(self, expression: ir.Expr, frame: Frame) -> Operand:
        """An expression as something to compare: a series by row, or one value for all."""
        match expression:
            case ir.Prop(variable, name):
                return Series(frame.rows[variable].column(name), frame.at(variable))
            case ir.Var(name):
                return Series(frame.rows[name].column("id"), frame.at(name))
            case ir.Param() | ir.Constant():
                return self.constant(expression)
            case ir.TextMatch():
                return Series(self._text_match(expression, frame))
            case ir.Call() | ir.Filter() if not any(mentioned(expression)):
                return _only(self._computed(expression, Frame(1)))
            case ir.Call() | ir.Filter():
                return self._computed(expression, frame)
            case _:
                raise TypeError(f"{type(expression).__name__} has no value by row")

    def _computed(self, expression: ir.Call | ir.Filter, frame: Frame) -> Operand:
        from omnigraph.read.run.computing import computed, truth

        if isinstance(expression, ir.Filter):
            return Series(truth(expression, frame, self).column())
        return computed(expression, frame, self)

    def constant(self, expression: ir.Expr) -> Value:
        """A literal's or a parameter's value."""
        if isinstance(expression, ir.Constant):
            return expression.value
        if isinstance(expression, ir.Param):
            return self.params[expression.name]
        raise TypeError(f"{type(expression).__name__} is not the same for all rows")

    def arrow(self, expression: ir.Expr, frame: Frame, kind: pa.DataType) -> pa.Array:
        """An expression as a column of the result."""
        operand = self.operand(expression, frame)
        if isinstance(operand, Series):
            values = operand.arrow
            return values if values.type == kind else values.cast(kind)
        return pa.repeat(pa.scalar(list(operand) if isinstance(operand, tuple) else operand, kind), frame.count)

    def _text_match(self, match: ir.TextMatch, frame: Frame) -> Column:
        """Whether each row's text matches: unknown where there is no text or nothing to look for."""
        query = self.constant(match.query)
        rows = frame.rows[match.variable]
        edits = None if match.edits is None else self._edits(match.edits)
        if query is None or not rows.count or (match.edits is not None and edits is None):
            return Column(pa.nulls(frame.count, pa.bool_()))
        index = rows.text_index(match.property)
        positions, missing = _present(frame.at(match.variable))
        if edits is None:
            found = index.matches(str(query), positions)
        else:
            found = index.fuzzy_matches(str(query), edits, positions)
        nulls = index.is_null if positions is None else index.is_null[positions]
        return Column(to_arrow(found, nulls if missing is None else nulls | missing))

    def _edits(self, expression: ir.Expr) -> int | None:
        edits = self.constant(expression)
        if edits is None:
            return None
        assert isinstance(edits, int)  # noqa: S101  the checker asks for an integer
        if edits < 0:
            name = expression.name if isinstance(expression, ir.Param) else "edits"
            raise ParameterError(self.query, {name: f"is {edits}, and a word cannot have fewer than 0 edits"})
        return edits

    def embedded(self, text: str, near: ir.Nearest) -> Floats:
        """The vector of a text, for distances to a property; the same text is embedded once."""
        key = (text, near.dimension)
        if key not in self._embedded:
            self._embedded[key] = self._embed(text, near)
        return self._embedded[key]

    def _embed(self, text: str, near: ir.Nearest) -> Floats:
        client = self._embedder()
        target = f"`{near.property}`"
        if client is None:
            raise EmbeddingUnavailable(
                f"query '{self.query}' looks for a text near {target}, and no embedding provider is configured; "
                "set OMNIGRAPH_EMBED_PROVIDER, or pass a vector"
            )
        if near.model is not None and near.model != client.model:
            raise EmbeddingUnavailable(
                f"{target} was embedded with model '{near.model}', and the configured client has "
                f"'{client.model}'; configure that model, or pass a vector"
            )
        return np.asarray(client.embed([text], near.dimension, "query")[0], dtype=np.float64)


def _live(condition: ir.Filter, frame: Frame) -> Bools | None:
    """In which rows of a frame the variables of a condition are entities that exist; None if in all."""
    live: Bools | None = None
    for name in set(mentioned(condition)):
        mask = frame.rows[name].live if frame.at(name) is None else None
        if mask is not None:
            live = mask if live is None else live & mask
    return live


def _only(found: Operand) -> Operand:
    """A value that is the same for all rows, computed for one."""
    if not isinstance(found, Series):
        return found
    value: Any = found.arrow[0].as_py()
    return tuple(value) if isinstance(value, list) else value


def this_moment() -> dt.datetime:
    """The value of `now()`, to the millisecond that a DateTime can hold."""
    now = dt.datetime.now(dt.UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _present(positions: Array | None) -> tuple[Array | None, Bools | None]:
    """Positions that can be looked up, and which of them stand for no row."""
    if positions is None or not len(positions) or int(positions.min()) >= 0:
        return positions, None
    missing = positions < 0
    return np.where(missing, 0, positions), missing
