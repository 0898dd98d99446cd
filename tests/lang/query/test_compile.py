"""Compiling: one query of a text against a catalog, chosen by name, kept for the next time."""

from __future__ import annotations

import pytest
from tests.lang.query.support import CATALOG, SCHEMA, compiled, problems

from omnigraph.errors import QueryError
from omnigraph.lang.query.compile import (
    CompiledMutation,
    CompiledRead,
    compile_mutation,
    compile_query,
    compile_read,
    parse_query_file,
)
from omnigraph.lang.query.ir import MutationIR, QueryIR
from omnigraph.lang.schema.catalog import load_catalog

READ = "query names() { match { $p: Pilot } return { $p.call } }"
WRITE = "query add($c: String) { insert Pilot { call: $c } }"
TWO = f"{READ}\n{WRITE}"


def refused(text: str, name: str | None = None) -> QueryError:
    with pytest.raises(QueryError) as raised:
        compiled(text, name)
    return raised.value


class TestSelection:
    def test_the_only_query_needs_no_name(self) -> None:
        assert compiled(READ).name == "names"

    @pytest.mark.parametrize("name", ["names", "add"])
    def test_the_name_picks_one_of_several(self, name: str) -> None:
        assert compiled(TWO, name).name == name

    def test_the_first_of_equal_names_wins(self) -> None:
        twins = f"{READ}\nquery names() {{ match {{ $b: Base }} return {{ $b.code }} }}"
        assert compile_read(twins, CATALOG, "names").columns == ("p.call",)

    def test_several_without_a_name(self) -> None:
        error = refused(TWO)
        assert (error.code, error.diagnostics[0].message) == ("Q107", "the file holds 2 queries")
        assert error.diagnostics[0].help == "name one of: names, add"

    def test_none_at_all(self) -> None:
        assert refused("// nothing").code == "Q107"
        assert refused("", "names").diagnostics[0].help == "the file holds no query"

    def test_a_name_that_is_not_there(self) -> None:
        error = refused(TWO, "name")
        assert (error.code, error.diagnostics[0].message) == ("Q107", "query 'name' not found")
        assert error.diagnostics[0].help == "did you mean `names`?"

    def test_a_file_that_does_not_parse_has_no_queries(self) -> None:
        assert problems(f"{READ}\nquery broken() {{ }}", "names") == [
            "P001 expected `match`, `insert`, `update` or `delete`, found `}`"
        ]

    def test_other_queries_need_not_fit_the_schema(self) -> None:
        text = f"{READ}\nquery unfit() {{ match {{ $x: Nope }} return {{ $x }} }}"
        assert compile_read(text, CATALOG, "names").columns == ("p.call",)
        assert problems(text, "unfit") == ["T1 unknown node type `Nope`"]


class TestKinds:
    def test_a_body_of_statements_is_a_mutation(self) -> None:
        read, write = compiled(READ), compiled(WRITE)
        assert (read.kind, type(read), type(read.ir)) == ("read", CompiledRead, QueryIR)
        assert (write.kind, type(write), type(write.ir)) == ("mutation", CompiledMutation, MutationIR)

    def test_reads_and_mutations_are_asked_for(self) -> None:
        assert compile_read(READ, CATALOG) is compiled(READ)
        assert compile_mutation(WRITE, CATALOG) is compiled(WRITE)

    def test_one_is_not_the_other(self) -> None:
        with pytest.raises(QueryError, match="Q106: query `add` is a mutation, and a read is needed here"):
            compile_read(TWO, CATALOG, "add")
        with pytest.raises(QueryError, match="Q106: query `names` is a read, and a mutation is needed here"):
            compile_mutation(TWO, CATALOG, "names")

    def test_the_refusal_stands_at_the_name_of_the_query(self) -> None:
        with pytest.raises(QueryError) as raised:
            compile_read(TWO, CATALOG, "add", "graph.gq")
        [problem] = raised.value.diagnostics
        assert (problem.source, problem.line, problem.column) == ("graph.gq", 2, 7)
        assert problem.help == "run it with `mutate`"


class TestCaching:
    def test_the_same_question_has_the_same_answer(self) -> None:
        assert compile_query(READ, CATALOG) is compile_query(READ, CATALOG)
        assert parse_query_file(READ) is parse_query_file(READ)

    def test_catalogs_of_one_shape_share_it(self) -> None:
        assert compile_query(READ, load_catalog(f"// the same\n{SCHEMA}")) is compiled(READ)

    def test_another_schema_another_answer(self) -> None:
        other = load_catalog("node Pilot { call: String @key }")
        assert compile_query(READ, other) is not compiled(READ)

    def test_mistakes_are_reported_every_time(self) -> None:
        assert problems("query q() {") == problems("query q() {") != []

    def test_the_name_of_the_source_is_part_of_the_question(self) -> None:
        for source in ("a.gq", "b.gq"):
            with pytest.raises(QueryError) as raised:
                compile_query("query q() { match { $p: Nope } return { $p } }", CATALOG, None, source)
            assert raised.value.diagnostics[0].source == source


class TestCatalogEntry:
    """What a tool catalog says about a query."""

    TEXT = """
    query find($name: String, $ages: [I32]?, $like: Vector(3)?, $at: DateTime, $n: U64, $f: F32, $b: Bool)
      @description("Find pilots") @instruction("Use the call sign")
    { match { $p: Pilot { call: $name } } return { $p.call, $p.hours as hours } }
    """

    def test_name_words_and_kind(self) -> None:
        entry = compiled(self.TEXT).as_json()
        assert (entry["name"], entry["tool_name"], entry["mutation"]) == ("find", "find", False)
        assert (entry["description"], entry["instruction"]) == ("Find pilots", "Use the call sign")

    def test_parameters(self) -> None:
        assert compiled(self.TEXT).as_json()["params"] == [
            {"name": "name", "kind": "string", "nullable": False},
            {"name": "ages", "kind": "list", "item_kind": "int", "nullable": True},
            {"name": "like", "kind": "vector", "vector_dim": 3, "nullable": True},
            {"name": "at", "kind": "datetime", "nullable": False},
            {"name": "n", "kind": "bigint", "nullable": False},
            {"name": "f", "kind": "float", "nullable": False},
            {"name": "b", "kind": "bool", "nullable": False},
        ]

    def test_words_are_optional(self) -> None:
        entry = compiled(WRITE).as_json()
        assert (entry["description"], entry["instruction"], entry["mutation"]) == (None, None, True)
        assert entry["operation"]["writes"] == [{"kind": "node", "type_name": "Pilot"}]


def test_every_independent_problem_is_reported_in_reading_order() -> None:
    text = """query q($a: Text) {
      match { $p: Pilt  $b: Base { cod: 3 }  $b.size = "x"  not { $z: Base } }
      return { $q, sum($b) as s }
      order { t }
    }"""
    assert [problem.split()[0] for problem in problems(text)] == [
        "Q101",
        "T1",
        "T2",
        "T7",
        "T9",
        "Q103",
        "T8",
        "Q110",
    ]


def test_one_mistake_is_reported_once() -> None:
    """What depends on a mistyped name is not a mistake of its own."""
    assert problems("query q() { match { $p: Pilt  $p trusts $q  $p.call = 3 } return { $p.nope, $q } }") == [
        "T1 unknown node type `Pilt`"
    ]
    assert problems("query q($a: Text) { match { $p: Pilot { call: $a }  $p.hours > $a } return { $a } }") == [
        "Q101 unknown parameter type `Text`"
    ]
