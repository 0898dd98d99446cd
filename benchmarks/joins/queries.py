"""Six joins by value, in SQL and .gq."""

from __future__ import annotations

from typing import Final

from benchmarks.contest import Question
from benchmarks.engines import Model

MODEL: Final = Model(
    nodes=("Person", "Shop"),
    edges={},
    schema="""
node Person { id_: I64 @key  town: String?  age: I32  code: String }
node Shop { id_: I64 @key  place: String  years: I64  code: String }
""",
)

QUESTIONS: Final = (
    Question(
        "1 pairs of one town, counted",
        {
            "sql": "SELECT count(*) FROM Person a JOIN Person b ON a.town = b.town",
            "gq": """query q() {
                match { $a: Person  $b: Person  $a.town = $b.town } return { count($a) as count } }""",
        },
    ),
    Question(
        "2 shops by the age of people in town",
        {
            "sql": """
                SELECT p.age, count(*) FROM Person p JOIN Shop s ON p.town = s.place
                GROUP BY p.age ORDER BY p.age""",
            "gq": """query q() {
                match { $p: Person  $s: Shop  $p.town = $s.place }
                return { $p.age as age, count($s) as count } order { age } }""",
        },
    ),
    Question(
        "3 one to one by a text",
        {
            "sql": "SELECT sum(p.age), sum(s.years) FROM Person p JOIN Shop s ON p.code = s.code",
            "gq": """query q() {
                match { $p: Person  $s: Shop  $p.code = $s.code }
                return { sum($p.age) as ages, sum($s.years) as years } }""",
        },
    ),
    Question(
        "4 by town and number of years",
        {
            "sql": """
                SELECT max(p.id), max(s.id), count(*)
                FROM Person p JOIN Shop s ON p.town = s.place AND p.age = s.years""",
            "gq": """query q() {
                match { $p: Person  $s: Shop  $p.town = $s.place  $p.age = $s.years }
                return { max($p.id_) as p, max($s.id_) as s, count($p) as count } }""",
        },
    ),
    Question(
        "5 people without a shop in town",
        {
            "sql": """
                SELECT count(*) FROM Person p WHERE NOT EXISTS (SELECT 1 FROM Shop s WHERE s.place = p.town)""",
            "gq": """query q() {
                match { $p: Person  not { $s: Shop  $s.place = $p.town } } return { count($p) as count } }""",
        },
    ),
    Question(
        "6 of some age, with some shops, listed",
        {
            "sql": """
                SELECT p.id, s.id FROM Person p JOIN Shop s ON p.town = s.place
                WHERE p.age = 40 AND s.years = 100 ORDER BY p.id, s.id LIMIT 20""",
            "gq": """query q() {
                match { $p: Person { age: 40 }  $s: Shop { years: 100 }  $p.town = $s.place }
                return { $p.id_ as p, $s.id_ as s } order { $p.id_, $s.id_ } limit 20 }""",
        },
    ),
)
