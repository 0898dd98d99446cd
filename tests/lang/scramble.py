"""The same tokens in another layout: what a formatter has to cope with."""

from __future__ import annotations

from hypothesis import strategies as st

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.source import Source
from omnigraph.lang.tokens import END, IDENT, INTEGER, TYPE_NAME, Token, lex

_GAPS = (
    *[" "] * 6,
    "",
    "\n",
    "\n \t\r\n\n",
    " /* {} */ ",
    "/* {}\n * and more */\n",
    " // {}  \r\n",
    "\n  // {}\n",
    "\n\n/*{}*/ //{}\n\n// {}\n",
)
_WORDS = (IDENT, TYPE_NAME, INTEGER, "-")


@st.composite
def scrambled(draw: st.DrawFn, text: str) -> str:
    """The text with other blanks, line ends and numbered comments between its tokens."""
    tokens = lex(Diagnostics(Source(text))).tokens
    gaps = draw(st.lists(st.sampled_from(_GAPS), min_size=len(tokens), max_size=len(tokens)))
    parts: list[str] = []
    before = Token("", "", 0, 0)
    for number, (token, gap) in enumerate(zip(tokens, gaps, strict=True)):
        touches = token.start == before.end
        if touches and before.kind in _WORDS and token.kind in _WORDS:
            parts.append("")
        elif not touches and not gap and token.kind != END:
            parts.append(" ")
        else:
            apart = " " if before.kind == "/" and gap.startswith("/") else ""  # or else it would begin a comment
            parts.append(apart + gap.replace("{}", str(number)))
        parts.append(text[token.start : token.end])
        before = token
    return "".join(parts)
