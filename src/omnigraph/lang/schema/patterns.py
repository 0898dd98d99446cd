r"""`@check` patterns: written in the dialect of Rust's regular expressions, matched by RE2, which Arrow has.

RE2 knows `\w`, `\d`, `\s` and `\b` for ASCII only. The first three become classes of Unicode characters. For `\b`,
and for `\W` inside a class, pattern and text are both flanked: every character of the text is put between two
others, `_é_` if it belongs to words and ` ! ` if it does not, so that RE2 finds its own boundaries where words of
any script have theirs, and every part of the pattern takes such a triple instead of a character. Texts in ASCII
need no flanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_WORD: Final = (
    r"\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200C}\x{200D}"
    r"\x{24B6}-\x{24E9}\x{1F130}-\x{1F149}\x{1F150}-\x{1F169}\x{1F170}-\x{1F189}"
)
_ASSIGNED: Final = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_MEMBERS: Final = {
    r"\PC": _ASSIGNED,
    r"\P{C}": _ASSIGNED,
    r"\d": r"\p{Nd}",
    r"\D": r"\P{Nd}",
    r"\s": r"\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}",
    r"\S": (
        r"\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}"
        r"\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF}"
    ),
}
_ANY: Final = r"(?s:.)"
_NONE: Final = r"[^\x{0}-\x{10FFFF}]"
_FLANK, _WORD_FLANK, _OTHER_FLANK = r"[_ \n]", "_", r"[ \n]"

_ESCAPE: Final = r"\\(?:[pPx]\{[^}]*\}|x[0-9A-Fa-f]{2}|[pP].|.)"
_PART: Final = re.compile(
    rf"""
      (?P<class>\[\^?\]?(?:\[:\^?[a-z]+:\]|{_ESCAPE}|[^\]\\])*\])
    | (?P<boundary>\\[bB])
    | (?P<syntax>\\[Az]|[\^$|)*+?]|\{{[0-9]+(?:,[0-9]*)?\}}|\((?:\?(?:P?<[^>]*>|[^:)]*[:)]))?)
    | (?P<escape>{_ESCAPE})
    | (?P<character>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_MEMBER: Final = re.compile(rf"\[:\^?[a-z]+:\]|{_ESCAPE}|.", re.DOTALL)
_WORD_ENDS: Final = r"words begin and end at `\b`"
_REFUSED_ESCAPES: Final = {
    r"\Q": (r"there is no `\Q`", r"put a backslash before each character that has a meaning"),
    r"\E": (r"there is no `\E`", r"put a backslash before each character that has a meaning"),
    r"\C": (r"there is no `\C`", r"a text has no bytes; `.` is one character"),
    r"\<": (r"`\<` cannot be matched", _WORD_ENDS),
    r"\>": (r"`\>` cannot be matched", _WORD_ENDS),
    r"\pC": (r"`\pC` cannot be matched", r"`\p{Cc}` are the control characters, `\PC` all that are assigned"),
    r"\p{C}": (r"`\p{C}` cannot be matched", r"`\p{Cc}` are the control characters, `\PC` all that are assigned"),
}
_SET_OPERATORS: Final = ("&&", "--", "~~")


@dataclass(frozen=True, slots=True)
class PatternProblem:
    """Why a pattern is not accepted, and what to write instead."""

    code: str
    message: str
    remedy: str | None = None


def pattern_problem(pattern: str) -> PatternProblem | None:
    """Why a pattern cannot be used; None if it can."""
    if (refused := _refusal(pattern)) is not None:
        return refused
    reason = _compile_error(pattern) or _compile_error(_prepare(pattern).regex)
    if reason is not None:
        return PatternProblem("S127", f"this regular expression does not compile: {reason}")
    return None


def matches(values: pa.ChunkedArray, pattern: str) -> pa.ChunkedArray:
    """Which texts the pattern matches somewhere, as a mask; null where there is no text."""
    import pyarrow.compute as pc

    prepared = _prepare(pattern)
    if not prepared.flanked:
        return pc.match_substring_regex(values, prepared.regex)
    matched = pc.match_substring_regex(values, pattern)
    foreign = pc.invert(pc.fill_null(pc.string_is_ascii(values), True))
    if not pc.any(foreign).as_py():
        return matched
    among = pc.match_substring_regex(_flanked(values.filter(foreign)), prepared.regex)
    return pc.replace_with_mask(matched, foreign.combine_chunks(), among.combine_chunks())


def _flanked(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts with every character flanked. A newline flanks itself, so that `(?m)^` and `(?m)$` find it."""
    import pyarrow.compute as pc

    others = pc.replace_substring_regex(values, rf"([^{_WORD}\n])", r" \1 ")
    words = pc.replace_substring_regex(others, rf"([{_WORD}])", r"_\1_")
    return pc.replace_substring(words, "\n", "\n\n\n")


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A pattern for RE2, and whether it matches flanked texts."""

    regex: str
    flanked: bool


@lru_cache(maxsize=256)
def _prepare(pattern: str) -> _Prepared:
    """The pattern on plain texts if RE2 can say it so, otherwise on flanked ones."""
    if _is_simple(pattern):
        return _Prepared(pattern, flanked=False)
    plain = _plain(pattern)
    if plain is not None and _compile_error(plain) is None:
        return _Prepared(plain, flanked=False)
    parts = "".join(_flanked_part(kind, text) for kind, text in _parts(pattern))
    return _Prepared(rf"\A(?s:...)*?(?:{parts})", flanked=True)


def _is_simple(pattern: str) -> bool:
    """Has it neither escapes nor classes, so that it means the same in all dialects?"""
    return "\\" not in pattern and "[" not in pattern


def _parts(pattern: str) -> Iterator[tuple[str, str]]:
    """The pattern's classes, boundaries, escapes, characters and other syntax, each with its kind."""
    for found in _PART.finditer(pattern):
        yield found.lastgroup or "", found.group()


def _plain(pattern: str) -> str | None:
    """The pattern with Unicode classes; None if it needs flanked texts."""
    out: list[str] = []
    for kind, text in _parts(pattern):
        if kind == "boundary":
            return None
        if kind == "class" or text in (r"\w", r"\W", *_MEMBERS):
            read = _read_class(text if kind == "class" else f"[{text}]")
            if read.others:
                if read.words or read.members:
                    return None
                read = _Class(not read.negated, words=True, others=False, members="")
            words = _WORD if read.words else ""
            out.append(f"[{'^' if read.negated else ''}{words}{read.members}]")
        else:
            out.append(text)
    return "".join(out)


def _flanked_part(kind: str, text: str) -> str:
    """A part of a pattern, as it matches flanked texts."""
    if kind in ("syntax", "boundary"):
        return text
    if kind == "class" or text in (r"\w", r"\W", *_MEMBERS):
        return _flanked_class(_read_class(text if kind == "class" else f"[{text}]"))
    return f"(?:{_FLANK}{re.escape(text) if text == '{' else text}{_FLANK})"


def _flanked_class(read: _Class) -> str:
    if read.negated:
        if read.words and read.others:
            return _NONE
        flank = _OTHER_FLANK if read.words else _WORD_FLANK if read.others else _FLANK
        return f"(?:{flank}{f'[^{read.members}]' if read.members else _ANY}{flank})"
    choices = []
    if read.words:
        choices.append(f"{_WORD_FLANK}{_ANY}{_WORD_FLANK}")
    if read.others:
        choices.append(f"{_OTHER_FLANK}{_ANY}{_OTHER_FLANK}")
    if read.members:
        choices.append(f"{_FLANK}[{read.members}]{_FLANK}")
    return f"(?:{'|'.join(choices)})"


@dataclass(frozen=True, slots=True)
class _Class:
    r"""A character class: is it negated, does it hold `\w` or `\W`, and its other members as RE2 writes them."""

    negated: bool
    words: bool
    others: bool
    members: str


def _read_class(text: str) -> _Class:
    """A bracketed class, its perl classes replaced by Unicode ones."""
    negated = text.startswith("[^")
    items = _MEMBER.findall(text[2 if negated else 1 : -1])
    members: list[str] = []
    at = 0
    while at < len(items):
        item = items[at]
        if items[at + 1 : at + 2] == ["-"] and at + 2 < len(items) and item not in (r"\w", r"\W", *_MEMBERS):
            members.append(f"{_escaped(item)}-{_escaped(items[at + 2])}")
            at += 3
            continue
        if item not in (r"\w", r"\W"):
            members.append(_MEMBERS.get(item) or _escaped(item))
        at += 1
    return _Class(negated, r"\w" in items, r"\W" in items, "".join(members))


def _escaped(item: str) -> str:
    """A member of a class, so that it means itself wherever it stands."""
    return f"\\{item}" if item in ("^", "-", "]", "[") else item


def _refusal(pattern: str) -> PatternProblem | None:
    """What the dialect understands in another way than RE2 does."""
    if _is_simple(pattern):
        return None
    before = ""
    for kind, text in _parts(pattern):
        if kind == "class" and (problem := _class_refusal(text)) is not None:
            return problem
        refused = _REFUSED_ESCAPES.keys() & (_MEMBER.findall(text) if kind == "class" else (text,))
        if refused:
            return PatternProblem("S128", *_REFUSED_ESCAPES[min(refused)])
        if before == "boundary" and text == "{":
            return PatternProblem("S128", r"`\b{…}` cannot be matched", _WORD_ENDS)
        before = kind
    return None


def _class_refusal(text: str) -> PatternProblem | None:
    items = _MEMBER.findall(text[1:-1].removeprefix("^"))
    for first, second in pairwise(items):
        if first + second in _SET_OPERATORS:
            message = f"`{first + second}` combines sets of characters, which `@check` cannot do"
            return PatternProblem("S128", message, f"list the characters; `\\{first}` is the character itself")
    if "[" in items:
        return PatternProblem(
            "S128", "a class inside a class cannot be matched", r"list all in one class; `\[` is the bracket"
        )
    return None


@lru_cache(maxsize=256)
def _compile_error(regex: str) -> str | None:
    """Why RE2 does not compile an expression; None if it does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.match_substring_regex(pa.array([""]), regex)
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return None
