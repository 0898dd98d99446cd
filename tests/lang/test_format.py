"""The standard layout, and that formatting loses nothing: neither meaning nor comments."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.lang.query_strategies import query_files
from tests.lang.scramble import scrambled
from tests.lang.strategies import schemas
from tests.lang.trees import comment_texts, essence
from tests.sampling import examples

from omnigraph.errors import QueryError, SchemaError
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.query.format import format_queries, print_queries
from omnigraph.lang.schema.format import format_schema, print_schema
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.syntax import SchemaSyntax
from omnigraph.lang.source import Source

quick = settings(
    max_examples=examples(20, of=40), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def schema_tree(text: str) -> SchemaSyntax:
    """The tree of a schema that parses."""
    diagnostics = Diagnostics(Source(text))
    tree, _ = parse_schema(diagnostics)
    assert diagnostics.listed == []
    return tree


def formatted(text: str) -> str:
    """A text in the standard layout, which a second formatting must not change."""
    text = dedent(text)
    layout = format_queries if text.lstrip().startswith("query") else format_schema
    once = layout(text)
    assert layout(once) == once
    return once


def laid_out(text: str) -> str:
    return dedent(text).lstrip("\n")


class TestNothingIsLost:
    @quick
    @given(schemas.map(print_schema).flatmap(scrambled))
    def test_of_a_schema(self, text: str) -> None:
        once = format_schema(text)
        assert essence(schema_tree(once)) == essence(schema_tree(text))
        assert comment_texts(once) == comment_texts(text)
        assert format_schema(once) == once

    @quick
    @given(query_files.map(print_queries).flatmap(scrambled))
    def test_of_a_query_file(self, text: str) -> None:
        once = format_queries(text)
        assert essence(parse_query_file(once)) == essence(parse_query_file(text))
        assert comment_texts(once) == comment_texts(text)
        assert format_queries(once) == once

    @quick
    @given(st.lists(st.sampled_from(["// a\n", "/* b */", "\n", "\n\n", " ", "/* c\n*/"])).map("".join))
    def test_of_a_file_with_comments_only(self, text: str) -> None:
        for layout in (format_schema, format_queries):
            once = layout(text)
            assert comment_texts(once) == comment_texts(text)
            assert layout(once) == once


class TestSchemaLayout:
    @pytest.mark.parametrize("text", ["", "\n", " \t\r\n \n"])
    def test_an_empty_file_stays_empty(self, text: str) -> None:
        assert format_schema(text) == format_queries(text) == ""

    def test_one_member_per_line_and_one_blank_line_between_declarations(self) -> None:
        text = """
            interface Named{name:String}node Person @description("x")implements Named,Aged{name:String@key
            age:I32?@range(age,0..150)@unique(name,age)tags:[String]?}
            edge Knows:Person->Person@card(0..)@note{since:Date ?}edge Has:Person->Thing{}node Thing{}
        """
        assert formatted(text) == laid_out("""
            interface Named {
              name: String
            }

            node Person @description("x") implements Named, Aged {
              name: String @key
              age: I32?
              @range(age, 0..150)
              @unique(name, age)
              tags: [String]?
            }

            edge Knows: Person -> Person @card(0..) @note {
              since: Date?
            }

            edge Has: Person -> Thing

            node Thing {}
        """)

    def test_literals_keep_their_spelling(self) -> None:
        text = 'node N {\n  x: F64 @foo("a\\tb", k=007, l=1.50, m=true)\n  @range(x, -1.50..2)\n}\n'
        assert formatted(text) == text
        text = 'node N {\n  x: F64\n    @description("two\nlines")\n}\n'
        assert formatted(text) == text

    def test_a_long_header_has_its_parts_on_lines_of_their_own(self) -> None:
        long = "x" * 90
        assert formatted(f'node N @description("{long}") @note implements A, B {{}}') == laid_out(f"""
            node N
              @description("{long}")
              @note
              implements A, B
            {{}}
        """)
        assert formatted(f'edge E: A -> B @card(0..1) @description("{long}")') == laid_out(f"""
            edge E: A -> B @card(0..1)
              @description("{long}")
        """)

    def test_a_long_property_has_its_annotations_on_lines_of_their_own(self) -> None:
        long = "x" * 90
        assert formatted(f'node N {{ p: String @key @description("{long}") q: I32 @index }}') == laid_out(f"""
            node N {{
              p: String
                @key
                @description("{long}")
              q: I32 @index
            }}
        """)

    def test_the_values_of_a_long_enum_fill_lines(self) -> None:
        values = [f"value-{i}" for i in range(20)]
        text = formatted(f"node N {{ e: enum({','.join(values)})? @index }}")
        assert text.splitlines()[1] == "  e: enum("
        assert text.splitlines()[-3:] == ["  )?", "    @index", "}"]
        assert len(text.splitlines()) == 8
        assert max(len(line) for line in text.splitlines()) <= 100


class TestQueryLayout:
    def test_sections_clauses_and_short_lists(self) -> None:
        text = """
            query q($a:String,$v:Vector(3)?,$l:[I32]) @description("d"){match{$p:Person{name:$a,age:-3,}
            $p $k:knows{1,3}$f $f<knows>$_ $f.age>=3 not{$f worksAt $_}optional{$p has $t $t.x is not null}
            search($f.bio,"x")["a","b"]contains $f.name}return distinct{$p.name as n count(distinct $f)as c,}
            order{n desc,c}limit 10 offset $o}
        """
        assert formatted(text) == laid_out("""
            query q($a: String, $v: Vector(3)?, $l: [I32]) @description("d") {
              match {
                $p: Person { name: $a, age: -3 }
                $p $k:knows{1,3} $f
                $f <knows> $_
                $f.age >= 3
                not { $f worksAt $_ }
                optional {
                  $p has $t
                  $t.x is not null
                }
                search($f.bio, "x")
                ["a", "b"] contains $f.name
              }
              return distinct { $p.name as n, count(distinct $f) as c }
              order { n desc, c }
              limit 10 offset $o
            }
        """)

    def test_statements(self) -> None:
        text = """
            query w(){insert Person{name:"a" age:3}update Person set{age:now()}where name="a"and age>=2
            delete Person where name!=$x}
        """
        assert formatted(text) == laid_out("""
            query w() {
              insert Person { name: "a", age: 3 }
              update Person set { age: now() } where name = "a" and age >= 2
              delete Person where name != $x
            }
        """)

    def test_what_is_too_long_is_broken_at_its_items(self) -> None:
        name = "a" * 40
        text = f"""
            query q($x{name}: String, $y{name}: String, $z: I32) {{
              update N set {{ p: $x{name}, q: $y{name} }} where name = "some name"
              insert N {{ p: $x{name}, q: $y{name}, r: 3 }}
            }}
            query r() {{
              match {{ $n: N {{ p: "{name}", q: "{name}" }} }}
              return {{ $n.{name} as b, $n.{name} as c }}
            }}
        """
        assert formatted(text) == laid_out(f"""
            query q(
              $x{name}: String,
              $y{name}: String,
              $z: I32
            ) {{
              update N set {{
                p: $x{name},
                q: $y{name}
              }} where name = "some name"
              insert N {{
                p: $x{name},
                q: $y{name},
                r: 3
              }}
            }}

            query r() {{
              match {{
                $n: N {{
                  p: "{name}",
                  q: "{name}"
                }}
              }}
              return {{
                $n.{name} as b,
                $n.{name} as c
              }}
            }}
        """)


class TestComments:
    def test_in_front_behind_and_inside(self) -> None:
        text = """
            // file

            /* about A */ node /* inside A */ A { // behind A
              p: /* inside p */ I32 // behind p
              // about q
              q: I32 /* behind q */ // and more
              /* about r */ r: I32
              // at the end
            } // behind the brace
            edge E: A -> A { // no body
            }
            // last
        """
        assert formatted(text) == laid_out("""
            // file

            /* about A */
            /* inside A */
            node A { // behind A
              /* inside p */
              p: I32 // behind p
              // about q
              q: I32 /* behind q */ // and more
              /* about r */
              r: I32
              // at the end
            } // behind the brace

            // no body
            edge E: A -> A

            // last
        """)

    def test_a_comment_keeps_a_short_list_open(self) -> None:
        text = """
            query q() { match { $p: P { // of p
              a: 1, // of a
              // about b
              b: 2 } }
              return { $p.a, // of a
                // about b
                $p.b }
              /* about limit */ limit 3 // behind limit
              // the end
            }
        """
        assert formatted(text) == laid_out("""
            query q() {
              match {
                $p: P { // of p
                  a: 1, // of a
                  // about b
                  b: 2
                }
              }
              return {
                $p.a, // of a
                // about b
                $p.b
              }
              /* about limit */
              limit 3 // behind limit
              // the end
            }
        """)

    def test_comments_around_the_tail_of_a_statement(self) -> None:
        text = """
            query q() {
              update /* a */ N set { p: 1 /* b */ } /* c */ where q = 2 // d
              update N set {} /* e */ where q = 2
              insert N { /* f */ }
            }
        """
        assert formatted(text) == laid_out("""
            query q() {
              /* a */
              update N set {
                p: 1 /* b */
                /* c */
              } where q = 2 // d
              /* e */
              update N set {} where q = 2
              insert N { /* f */
              }
            }
        """)

    def test_single_blank_lines_between_items_stay_and_others_go(self) -> None:
        text = """
            node A {

              a: I32


              // about b

              b: I32
              c: I32

            }
            node B {}
        """
        assert formatted(text) == laid_out("""
            node A {
              a: I32

              // about b

              b: I32
              c: I32
            }

            node B {}
        """)

    def test_line_ends_become_line_feeds_and_blanks_at_line_ends_go(self) -> None:
        assert formatted("node A { // x \t\r\n p: I32\r\n}\r\n") == "node A { // x\n  p: I32\n}\n"


class TestMistakes:
    def test_all_of_them_are_listed(self) -> None:
        with pytest.raises(SchemaError) as schema:
            format_schema("node { }\nnode B { p: Strin }\n", "a.pg")
        assert [(d.source, d.line) for d in schema.value.diagnostics] == [("a.pg", 1), ("a.pg", 2)]
        with pytest.raises(QueryError) as query:
            format_queries("query q( {}\nquery r() { match { } return { 1 } }", "a.gq")
        assert [(d.source, d.line) for d in query.value.diagnostics] == [("a.gq", 1), ("a.gq", 2)]

    def test_what_only_a_type_checker_refuses_is_formatted(self) -> None:
        assert format_schema("edge E: X -> Y") == "edge E: X -> Y\n"
        assert format_queries("query q(){insert X{}}") == "query q() {\n  insert X {}\n}\n"
