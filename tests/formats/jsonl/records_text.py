"""Texts of records for tests: mostly good ones, in odd spellings, and what becomes of them when bytes change."""

from __future__ import annotations

import datetime as dt
import json
import sys

from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import EntityType, NodeType, load_catalog
from omnigraph.lang.values import F32_MAX, FLOATS, INTEGER_BOUNDS, Scalar, ValueType

CATALOG = load_catalog("""
node Thing {
  s: String?  i: I32?  l: I64?  u: U32?  h: U64?  f: F32?  g: F64?  b: Bool?  day: Date?  at: DateTime?
  kind: enum(red, green)?  words: [String]?  nums: [I32]?  sizes: [F32]?  weights: [F64]?  flags: [Bool]?
  days: [Date]?  times: [DateTime]?  v: Vector(2)?  blob: Blob?
}
node Person { name: String @key  age: I32?  data: String? }
node Seat { row: U32  on: Date  @key(row, on) }
node Stop { name: String  at: DateTime  open: Bool  size: F32  @key(name, at, open, size) }
node Label { type: String?  edge: String? }
node Tag { type: String? }
node Mark { x: F64 @key }
node Tick { at: DateTime @key }
node Doc { title: String  meaning: Vector(2) @embed("title") }
edge Knows: Person -> Person { since: Date?  weight: F64 }
edge Plain: Person -> Person
""")

_NUMBERS = [
    *["0", "-0", "-0.0", "-0e0", "1", "-1", "1.0", "1e2", "1E+2", "1e-2", "1e400", "-1e400", "1e-400", "-1e-400"],
    *["0e999", "NaN", "Infinity", "-Infinity", "01", "-01", "1.", ".5", "+1", "1e", "--1", "0x10", "1_000"],
    *["3.4028235e38", "3.5e38", repr(F32_MAX), str(int(F32_MAX)), str(int(F32_MAX) - 1), "1.1754942e-38"],
    *[repr(sys.float_info.max), str(int(sys.float_info.max)), str(int(sys.float_info.max) + 1), "9" * 309],
    *[str(bound + step) for pair in INTEGER_BOUNDS.values() for bound in pair for step in (-1, 0, 1)],
    *["16777217", "16777217.0", "0.1", "9007199254740993", "2.2250738585072011e-308", "1" * 5000],
]
_TEXTS = [
    *[r'"\ud83d\ude00"', r'"\ud83d"', r'"\ude00"', r'"\ude00\ud83d"', r'"\\ud83d"', r'"\u0041\/\b"', r'"\q"'],
    *['"a\tb"', '"a\u2028b"', '"\x7f"', '"é"', '"\x00"', r'"\u0000"', '"id"', '"data"', r'"\"id\": "', '"{\\"}"'],
]
_DATES = [
    *["2024-02-29", "2023-02-29", "0000-01-01", "0001-01-01", "9999-12-31", "2024-2-9", "20240229", "2024-13-01"],
    *["2024-01-01 ", "2024-01-01T00:00", "２０２４-01-01", "-024-01-01", "2024-00-10", "2024/01/01", ""],
]
_TIMES = [
    *["2024-02-29T10:00:00Z", "2024-02-29T10:00:00.5Z", "2024-02-29T10:00:00.123Z", "1969-12-31T23:59:59.999999Z"],
    *["2024-02-29 10:00:00Z", "2024-02-29t10:00:00z", "2024-02-29T10:00:00", "2024-02-29", "2024-02-29T10:00Z"],
    *["2024-02-29T10:00:00+01:00", "2024-02-29T10:00:00+00:00", "2024-02-29T10:00:00.123456+00:00"],
    *["2024-02-29T10:00:00-00:00", "2024-02-29T10:00:00.1234567Z", "2024-02-29T24:00:00Z", "2024-02-29T10:00:60Z"],
    *["0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59.999Z"],
    *["2024-02-29T10:00:00,5Z", "2024-02-29T10Z", "2024-02-29T10:00:00.Z", "2023-02-29T10:00:00Z", "noon", "Z"],
    *[
        "2024-02-29T10:00:00.123+00:00",
        "2024-02-29T10:00:00.12Z ",
        "2024-02-29T10:0000000Z",
        "9" * 20,
        "9" * 19 + "Z",
    ],
]
_ANYTHING = st.one_of(
    st.sampled_from(
        [*_NUMBERS, *_TEXTS, "null", "true", "false", "[]", "{}", "[null]", '{"a": 1, "a": 1}', "", "x"]
    ),
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
        lambda inner: st.lists(inner, max_size=2),
    ).map(json.dumps),
)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _texts() -> st.SearchStrategy[str]:
    spelled = st.tuples(st.text(max_size=8), st.booleans())
    return spelled.map(lambda pair: json.dumps(pair[0], ensure_ascii=pair[1]))


def _scalars(scalar: Scalar) -> st.SearchStrategy[str]:
    """How values of a type may be written; those of the lists may be wrong."""
    if scalar in INTEGER_BOUNDS:
        low, high = INTEGER_BOUNDS[scalar]
        return st.integers(low, high).map(str)
    if scalar in FLOATS:
        finite = st.floats(allow_nan=False, allow_infinity=False, width=32 if scalar is Scalar.F32 else 64)
        return st.one_of(finite.map(repr), st.integers().map(str), st.floats(-1e30, 1e30).map(repr))
    if scalar is Scalar.DATE:
        return st.dates().map(lambda day: f'"{day.isoformat()}"')
    if scalar is Scalar.DATETIME:
        moments = st.datetimes(timezones=st.just(dt.UTC))
        return st.one_of(
            moments.map(lambda moment: f'"{moment.isoformat()}"'),
            moments.map(lambda moment: f'"{moment.isoformat().removesuffix("+00:00")}Z"'),
        )
    if scalar is Scalar.BOOL:
        return st.sampled_from(["true", "false"])
    if scalar is Scalar.BLOB:
        return st.sampled_from(['"base64:AAEC"', '"base64:"', '"base64:A"', '"s3://x"'])
    return st.one_of(_texts(), st.sampled_from(['"Thing"', '"Label"']))


def _odd(scalar: Scalar) -> st.SearchStrategy[str]:
    if scalar in INTEGER_BOUNDS or scalar in FLOATS:
        return st.sampled_from(_NUMBERS)
    if scalar is Scalar.DATE:
        return st.one_of(st.sampled_from(_DATES).map(_quoted), st.integers(-(10**7), 10**7).map(str))
    if scalar is Scalar.DATETIME:
        return st.one_of(st.sampled_from(_TIMES).map(_quoted), st.integers().map(str))
    return st.sampled_from(_TEXTS)


def _values(value_type: ValueType, *, odd: bool) -> st.SearchStrategy[str]:
    scalar = _odd(value_type.scalar) if odd else _scalars(value_type.scalar)
    if value_type.is_plain:
        return scalar
    length = value_type.dimension
    least, most = (0, 3) if length is None or odd else (length, length)
    return st.lists(scalar, min_size=least, max_size=most).map(lambda items: f"[{', '.join(items)}]")


@st.composite
def _data(draw: st.DrawFn, entity: EntityType, trouble: int) -> str:
    members: list[tuple[str, str]] = []
    for prop in entity.properties.values():
        if prop.type.nullable and draw(st.integers(0, 2)):
            continue
        shape = draw(st.integers(0, 30)) if trouble else 30
        if shape == 0:
            value = draw(_ANYTHING)
        elif shape == 1:
            continue
        else:
            value = draw(_values(prop.type, odd=shape < 6))
        members.append((prop.name, value))
    if draw(st.integers(0, 5)) == 0:
        members.append(("id", draw(st.one_of(_texts(), st.sampled_from(["null", '""', "1", '"a"'])))))
    if trouble and draw(st.integers(0, 20)) == 0:
        members.append((draw(st.sampled_from(["zip", "s", "id", "src", "name"])), draw(_ANYTHING)))
    if draw(st.booleans()):
        members = draw(st.permutations(members))
    names = [_quoted(name) for name, _ in members]
    if trouble and names and draw(st.integers(0, 20)) == 0:
        names[0] = '"' + "".join(f"\\u{ord(letter):04x}" for letter in members[0][0]) + '"'
    return ", ".join(f"{name}: {value}" for name, (_, value) in zip(names, members, strict=True))


@st.composite
def _records(draw: st.DrawFn, trouble: int) -> str:
    """A record; ``trouble`` lets it be wrong."""
    entities: list[EntityType] = [*CATALOG.nodes.values(), *CATALOG.edges.values()]
    entity = draw(st.sampled_from(entities))
    data = f'"data": {{{draw(_data(entity, trouble))}}}'
    if isinstance(entity, NodeType):
        members = [f'"type": "{entity.name}"', data]
    else:
        ends = st.one_of(st.sampled_from(['"a"', '"b"', '""']), _texts())
        members = [f'"edge": "{entity.name}"', f'"from": {draw(ends)}', f'"to": {draw(ends)}', data]
    if trouble:
        change = draw(st.integers(0, 25))
        if change < 3:
            members.pop(draw(st.integers(0, len(members) - 1)))
        elif change < 6:
            members.append(
                draw(st.sampled_from([*members, '"type": "Thing"', '"edge": "plain"', '"x": 1', '"data": null']))
            )
        elif change == 6:
            members[-1] = f'"data": {draw(_ANYTHING)}'
        elif change == 7:
            members[1] = f"{members[1].partition(':')[0]}: null"
        elif change < 10:
            members = draw(st.permutations(members))
    if change_case := draw(st.integers(0, 12)):
        return "{" + (", " if change_case > 2 else ",").join(members) + "}"
    return (
        "{"
        + ", ".join(members).replace(": ", " : ").replace("Knows", "kNOWS")
        + draw(st.sampled_from(["}", ",}", " }"]))
    )


@st.composite
def _lines(draw: st.DrawFn) -> bytes:
    """One line, or several, or half of one."""
    shape = draw(st.integers(0, 40))
    if shape == 0:
        odd = [
            "",
            " ",
            "// comment",
            " // comment",
            "[]",
            "{}",
            "null",
            '{"type": "Thing"}',
            '{"type": "Thing",}',
            "}",
            "{",
        ]
        return draw(st.sampled_from(odd)).encode()
    line = draw(_records(shape < 25)).encode(errors="surrogatepass")
    if shape == 1:
        line = draw(st.sampled_from([b" ", b"", b"\r"])).join([line, draw(_records(0)).encode()])
    elif shape == 2:
        at = draw(st.integers(0, len(line)))
        line = line[:at] + b"\n" + line[at:]
    elif shape < 6:
        at = draw(st.integers(0, len(line) - 1))
        put = draw(
            st.one_of(st.binary(max_size=2), st.sampled_from([bytes([byte]) for byte in b'{}[]":,\\ 0\r\t\n']))
        )
        line = line[:at] + put + line[at + draw(st.integers(0, 2)) :]
    elif shape == 6:
        line = draw(st.sampled_from([b" ", b"\t", b"\xef\xbb\xbf", b"\r"])) + line
    elif shape == 7:
        line += draw(st.sampled_from([b" ", b"\r", b"\t", b",", b" // x", b"\x00", b"}"]))
    return line


@st.composite
def blocks_of_lines(draw: st.DrawFn) -> bytes:
    """Some lines, with any line ends."""
    lines = draw(st.lists(_lines(), max_size=12))
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n"]))
    return end.join(lines) + draw(st.sampled_from([b"", b"\n", b"\r\n"]))
