"""Names of files and objects without what differs from run to run: versions, unique ids, temporary names."""

from __future__ import annotations

import re
from typing import Final

_CHANGING: Final = re.compile(
    r"""
    (?<=\.tmp)\w{6}                                                   # a temporary file
  | [01]{24}[0-9a-f]{26}                                              # a data file of Lance
  | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}      # a transaction, an index
  | (?<![0-9A-Za-z])[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}(?![0-9A-Za-z])  # a ULID
  | (?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])                              # a holder of a lease
  | \d+(?=\.manifest)                                                 # a version
  | \d+-\d+-\d+(?=\.)                                                 # a deletion file
""",
    re.VERBOSE,
)


def pattern(name: str) -> str:
    """A glob that matches this file or object in every run; its stars stand for what differs."""
    return re.sub(r"\d+-\*", "*", _CHANGING.sub("*", name))
