"""The policy of a cleanup: how much of the history stays."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final

from omnigraph.arguments import described, number_argument, shortened
from omnigraph.errors import InvalidArgument

DEFAULT_GRACE: Final = dt.timedelta(hours=1)
"""For how long readers may use a state that is not the newest any more, and writers may prepare a change."""

LONGEST: Final = dt.timedelta(days=36_525)
_DURATION: Final = re.compile(r"(\d{1,8})\s*([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}

Duration = str | dt.timedelta
"""A length of time: a timedelta, or a text such as `90s`, `15m`, `12h`, `7d` or `2w`."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Which states of a branch stay: the newest ``keep`` commits, and those that were the newest state at some
    time in the last ``older_than``. A state goes only if it fails both; what was the newest within the ``grace``
    period stays in any case."""

    keep: int | None
    older_than: dt.timedelta | None
    grace: dt.timedelta = DEFAULT_GRACE

    @property
    def window(self) -> dt.timedelta:
        """States that were the newest within this time stay."""
        return max(self.grace, self.older_than or self.grace)


def retention(keep: int | None, older_than: Duration | None, grace: Duration | None) -> Retention:
    """The policy that a caller asks for; InvalidArgument if it makes no sense."""
    if keep is None and older_than is None:
        raise InvalidArgument("keep", "say how much of the history stays: give keep, older_than, or both")
    if keep is not None and number_argument("keep", keep) < 0:
        raise InvalidArgument("keep", f"it is a number of commits, not {keep}")
    return Retention(
        keep,
        None if older_than is None else duration("older_than", older_than),
        DEFAULT_GRACE if grace is None else duration("grace", grace),
    )


def duration(argument: str, value: Duration) -> dt.timedelta:
    """A length of time that a caller gave."""
    if not isinstance(value, dt.timedelta | str):
        raise InvalidArgument(argument, f"it is a duration such as '7d', or a timedelta, not {described(value)}")
    found = _parsed(argument, value) if isinstance(value, str) else value
    if not dt.timedelta(0) <= found <= LONGEST:
        raise InvalidArgument(argument, f"{value} is no time of up to a hundred years")
    return found


def _parsed(argument: str, value: str) -> dt.timedelta:
    found = _DURATION.fullmatch(value.strip().lower())
    if found is None:
        reason = f"'{shortened(value)}' is no duration; write a number and s, m, h, d or w, as in 90s, 12h or 7d"
        raise InvalidArgument(argument, reason)
    return dt.timedelta(**{_UNITS[found[2]]: int(found[1])})
