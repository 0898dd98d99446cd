"""The score functions of the language, as a table: how each is written, and how its scores rank entities.

The parser, the type checker and both engines read this table. What the operands of a function must be is said in
`typecheck/rankings.py`, how its scores are computed in `omnigraph.read.run.search.scorers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from typing import Literal as OneOf

from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a score function. ``wanted`` completes "expected `,` and …" where the operand is missing."""

    kind: OneOf["property", "expression", "ranking"]
    wanted: str = ""
    example: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class LimitRule:
    """The mistake of ordering by a ranking without a `limit`; ``returned``: also of only returning its scores."""

    code: str
    message: str
    returned: bool = False


@dataclass(frozen=True, slots=True)
class ScoreFunction:
    """A row of the table."""

    name: str
    operands: tuple[Operand, ...]
    descending: bool
    """Is the largest score the best?"""
    positive: bool = False
    """Does only a score above zero rank an entity? Otherwise every score does."""
    limit: LimitRule | None = None
    """The rule about `limit`; None if a query may be ordered by the scores of all rows."""
    direction: str | None = None
    """Which entities come first, if `order` takes neither `asc` nor `desc` behind a call."""
    beside_aliases: bool = True
    """May `order` name the alias of a column beside a call?"""

    @property
    def is_fusion(self) -> bool:
        """Does it fuse rankings instead of scoring a property?"""
        return self.operands[0].kind == "ranking"


SCORES: Final[Mapping[str, ScoreFunction]] = {
    function.name: function
    for function in (
        ScoreFunction(
            "nearest",
            (Operand("property", example="$x.vector"), Operand("expression", "what to be near to")),
            descending=False,
            limit=LimitRule("T17", "ordering by `nearest` needs a `limit`"),
            direction="the nearest first",
            beside_aliases=False,
        ),
        ScoreFunction(
            "bm25",
            (Operand("expression"), Operand("expression", "the text to look for")),
            descending=True,
            positive=True,
        ),
        ScoreFunction(
            "rrf",
            (
                Operand("ranking"),
                Operand("ranking", "a second ranking"),
                Operand("expression", optional=True),
            ),
            descending=True,
            limit=LimitRule("T21", "`rrf` needs a `limit`", returned=True),
        ),
    )
}
ARMS: Final = tuple(name for name, function in SCORES.items() if not function.is_fusion)
"""The functions whose rankings can be fused."""
