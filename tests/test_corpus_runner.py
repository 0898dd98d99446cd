"""The runner itself: scenario files are read strictly, and what does not come true is reported with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus_engine import GraphEngine
from tests.corpus_format import FormatError, parse_scenario
from tests.corpus_runner import run_scenario
from tests.corpus_text import row_lines

SCHEMA = "--- schema\nnode Person { name: String @key  age: I32? }\nedge Knows: Person -> Person\n"
ADULTS = "--- query\nquery adults($min: I32) { match { $p: Person  $p.age >= $min } return { $p.name } }\n"


def failures(*sections: str) -> list[str]:
    """What goes wrong in a scenario of these sections."""
    return run_scenario(parse_scenario("= Test\n" + "".join(sections), "test", "test.gqt"))


class TestReading:
    def test_a_file_has_a_title_prose_and_steps(self) -> None:
        scenario = parse_scenario("= Keys\nWhat they\nare.\n\n--- schema\nnode A {}\n\n\n", "keys", "keys.gqt")
        assert (scenario.name, scenario.title, scenario.description) == ("keys", "Keys", "What they\nare.")
        [step] = scenario.steps
        assert (step.section.kind, step.section.body, step.section.place) == ("schema", "node A {}", "keys.gqt:5")

    def test_a_note_stays_with_the_steps_below_it(self) -> None:
        scenario = parse_scenario(
            "= T\n--- note One\ntwo\n--- schema\n--- schema\n--- note X\n--- schema", "t", "t"
        )
        assert [step.note for step in scenario.steps] == ["One two", "One two", "X"]

    def test_parameters_again_are_another_run(self) -> None:
        text = "= T\n--- query\nq\n--- params\n{}\n--- rows\n--- params\n{}\n--- error\nparam x\n"
        [step] = parse_scenario(text, "t", "t").steps
        assert [sorted(run.expectations) for run in step.runs] == [["rows"], ["error"]]
        assert step.expected_error is None

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "t.gqt:1: a scenario begins with a title line"),
            ("--- schema\n", "t.gqt:1: a scenario begins with a title line"),
            ("= T\n", "t.gqt:1: a scenario needs at least one section"),
            ("= T\n--- error\nP001 1:1\n", "t.gqt:2: `--- error` comes before any step"),
            ("= T\n--- schema\n--- result\n", "t.gqt:3: unknown section `--- result`"),
            ("= T\n---\n", "t.gqt:2: `--- ` comes before any step"),
            ("= T\n--- schema\n--- rows\n", "t.gqt:3: `--- schema` has no `--- rows`"),
            ("= T\n--- schema\n--- catalog\n--- catalog\n", "t.gqt:4: `--- catalog` is given twice"),
            ("= T\n--- schema\n--- error\n", "t.gqt:3: `--- error` lists the expected problems"),
            ("= T\n--- schema\n--- catalog\n--- error\nP001 1:1\n", "t.gqt:4: `--- error` stands alone"),
            ("= T\n--- schema my.pg\n", "t.gqt:2: `--- schema` does not take `my.pg`"),
            ("= T\n--- fmt sql\n", "t.gqt:2: `--- fmt` does not take `sql`"),
            ("= T\n--- migrate soft\n", "t.gqt:2: `--- migrate` does not take `soft`"),
            ("= T\n--- load\n", "t.gqt:2: `--- load` does not take ``"),
            ("= T\n--- table Person\n", "t.gqt:2: `--- table` does not take `Person`"),
            ("= T\n--- query\n--- rows sorted\n", "t.gqt:3: `--- rows` does not take `sorted`"),
            ("= T\n--- schema\n--- params\n{}\n", "t.gqt:3: `--- params` belongs to a query"),
            ("= T\n--- query\n--- params\n{\n", "t.gqt:3: the parameters are not JSON"),
            ("= T\n--- query\n--- params\n[]\n", "t.gqt:3: the parameters are a JSON object"),
        ],
    )
    def test_mistakes_of_the_file(self, text: str, reason: str) -> None:
        with pytest.raises(FormatError) as raised:
            parse_scenario(text, "t", "t.gqt")
        assert str(raised.value).startswith(reason)

    @pytest.mark.parametrize(
        ("sections", "reason"),
        [
            (["--- query\nquery q() { match { $p: Person } return { $p } }\n"], "there is no schema yet"),
            ([SCHEMA, "--- data\n// people\n{}\n[1]\n"], "not a JSON object: [1]"),
            (["--- schema\nnode a\n--- error\nP001 here\n"], "neither `CODE line:column  text` nor"),
        ],
    )
    def test_mistakes_found_while_running(self, sections: list[str], reason: str) -> None:
        with pytest.raises(FormatError) as raised:
            failures(*sections)
        assert reason in str(raised.value)


class TestMismatches:
    def test_both_sides_are_shown_with_the_place_and_the_note(self) -> None:
        [failure] = failures("--- note Types exist\n--- schema\nnode A { x: Strin }\n--- error\nP001 1:12  Bool\n")
        assert failure == (
            "test.gqt:5: other problems\n"
            "  expected:\n"
            "    P001 1:12  Bool\n"
            "  actual:\n"
            "    P001 1:13  unknown type `Strin`  [help: did you mean `String`?]\n"
            "  note: Types exist"
        )

    def test_every_failing_step_is_reported(self) -> None:
        found = failures("--- schema\nnode\n", SCHEMA, "--- schema\nnode A {}\n--- error\nP001 1:1\n")
        assert [failure.splitlines()[0] for failure in found] == [
            "test.gqt:2: this fails, but should not",
            "test.gqt:9: this succeeds, but should fail",
        ]

    @pytest.mark.parametrize(
        ("expected", "fits"),
        [
            ("P001 1:6  upper-case\nC203 2:9", True),
            ("P001 1:6\nC203 2:9  unknown source type", True),
            ("P001 1:6\n", False),
            ("C203 2:9\nP001 1:6", False),
            ("P001 1:6\nC203 2:9\nC203 2:14", False),
            ("P001 1:6\nC203 2:9  something else", False),
            ("P001 1:6\nC204 2:9", False),
        ],
    )
    def test_errors_are_matched_exactly_and_in_order(self, expected: str, fits: bool) -> None:
        text = "--- schema\nnode a {}\nedge E: B -> C\nnode C {}\n"
        assert (failures(text, f"--- error\n{expected}\n") == []) is fits

    def test_a_refused_schema_leaves_the_current_one(self) -> None:
        assert failures(SCHEMA, "--- schema\nnode\n--- error\nP001 1:5\n", ADULTS) == []

    @pytest.mark.parametrize(
        "section",
        [
            "--- catalog\nnode Person\n",
            "--- migrate\nnode Person { name: String @key }\n--- steps\n",
        ],
    )
    def test_expectations_about_schemas(self, section: str) -> None:
        assert len(failures(SCHEMA, section)) == 1


class TestQueries:
    def test_everything_known_without_an_engine(self) -> None:
        plan = "--- plan\nScan $p: Person\nFilter $p.age >= param $min\nReturn $p.name\n"
        about = "--- columns\np.name\n--- reads\nnode:Person\n--- writes\n"
        fits = '--- params\n{"min": 18}\n--- rows\n{"p.name": "Ada"}\n'
        misses = "--- params\n{}\n--- error\nparam min  required\n"
        assert failures(SCHEMA, ADULTS, plan, about, fits, misses) == []

    @pytest.mark.parametrize(
        ("section", "reason"),
        [
            ("--- plan\nScan $p: Person\n", "other plan"),
            ("--- columns\nname\n", "other columns"),
            ("--- reads\n", "other reads"),
            ("--- writes\nnode:Person\n", "other writes"),
            ("--- error\nT1 1:1\n", "this succeeds, but should fail"),
            ('--- params\n{"min": "x"}\n', "this fails, but should not"),
            ('--- params\n{"min": 1}\n--- error\nparam min\n', "the parameters fit, but should not"),
            ("--- params\n{}\n--- error\nparam max  required\n", "other problems"),
            ("--- rows\n", "this fails, but should not"),
        ],
    )
    def test_what_does_not_come_true(self, section: str, reason: str) -> None:
        [failure] = failures(SCHEMA, ADULTS, section)
        assert reason in failure.splitlines()[0]

    def test_a_name_picks_one_of_several(self) -> None:
        body = "match { $p: Person } return { $p.age }"
        two = f"query a() {{ {body} }}\nquery b() {{ {body} }}\n"
        assert failures(SCHEMA, f"--- query b\n{two}--- columns\np.age\n") == []
        assert failures(SCHEMA, f"--- query\n{two}--- error\nQ107 1:1  name one of: a, b\n") == []

    def test_reads_and_mutations_are_told_apart(self) -> None:
        insert = 'query add() { insert Person { name: "Ada" } }\n'
        assert (
            failures(SCHEMA, f"--- mutate\n{insert}--- writes\nnode:Person\n--- affected\nnodes 1, edges 0\n")
            == []
        )
        assert "is a mutation, not a read" in failures(SCHEMA, f"--- query\n{insert}")[0]
        assert "is a read, not a mutation" in failures(SCHEMA, ADULTS.replace("query", "mutate", 1))[0]

    def test_lint(self) -> None:
        file = "--- lint\nquery a() { match { $p: Persn } return { $p } }\n"
        assert "the file has errors" in failures(SCHEMA, file)[0]
        [failure] = failures(SCHEMA, file, "--- findings\n")
        assert "error T1" in failure
        assert failures(SCHEMA, "--- lint\nquery a() { match { $p: Person } return { $p } }\n--- findings\n") == []

    def test_formatting(self) -> None:
        assert failures("--- fmt pg\nnode  A{}\n--- text\nnode A {}\n") == []
        assert "other text" in failures("--- fmt pg\nnode  A{}\n--- text\nnode  A {}\n")[0]
        assert failures("--- fmt pg\nnode\n--- error\nP001 1:5\n") == []


ADD = "--- mutate\nquery add($n: String, $age: I32?) { insert Person { name: $n, age: $age } }\n"
LOAD = '--- load merge\n{"type": "Person", "data": {"name": "Ada"}}\n// nobody\n{"type": "Person", "data": {}}\n'


class TestGraphs:
    """What only an engine can tell. Without one, the same scenarios are compiled and nothing more is claimed."""

    @staticmethod
    def run(*sections: str) -> list[str]:
        text = "= Test\n" + SCHEMA + "".join(sections)
        scenario = parse_scenario(text, "test", "test.gqt")
        assert run_scenario(scenario) == []
        return run_scenario(scenario, GraphEngine)

    def test_loads_mutations_and_tables(self) -> None:
        ada = '{"type": "Person", "data": {"name": "Ada", "age": 36}}\n'
        edge = '{"edge": "Knows", "from": "Ada", "to": "Ada"}\n'
        assert self.run("--- data\n", ada, "--- load append\n", edge, "--- loaded\nedge Knows 1\n") == []
        bo = '--- params\n{"n": "Bo"}\n--- affected\nnodes 1, edges 0\n'
        both = '{"id": "Ada", "name": "Ada", "age": 36}\n{"id": "Bo", "name": "Bo"}\n'
        assert self.run("--- data\n", ada, ADD, bo, "--- table node:Person\n", both) == []
        assert (
            self.run("--- data\n", ada, edge, '--- table edge:Knows\n{"id": "*", "src": "Ada", "dst": "Ada"}\n')
            == []
        )

    @pytest.mark.parametrize(
        ("sections", "reason"),
        [
            (['--- data\n{"type": "Nobody"}\n'], "this is refused, but should not"),
            ([ADD, '--- params\n{"n": "Bo"}\n--- affected\nnodes 2, edges 0\n'], "other affected"),
            (
                [ADD, '--- params\n{"n": "Bo"}\n--- error\nviolation unique\n'],
                "this succeeds, but should be refused",
            ),
            (["--- load merge\n--- loaded\nnode Person 1\n"], "other loaded"),
            (['--- table node:Person\n{"id": "Ada"}\n'], "other rows"),
            ([LOAD, "--- error\nrecord 2 'name' has null\n"], "other problems"),
            ([LOAD, "--- error\nrecord 3 'name' has null\nmore 1\n"], "other problems"),
            ([LOAD, "--- error\nrecord 3 'age'\n"], "other problems"),
        ],
    )
    def test_what_does_not_come_true(self, sections: list[str], reason: str) -> None:
        [failure] = self.run(*sections)
        assert reason in failure.splitlines()[0]

    def test_refusals_are_matched_word_by_word_and_by_a_part(self) -> None:
        assert self.run(LOAD, "--- error\nrecord 3 non-nullable property 'name'\n") == []
        edge = '--- load append\n{"edge": "Knows", "from": "a", "to": "b"}\n'
        assert (
            self.run(edge, "--- error\nviolation endpoint src 'a' not found\nviolation endpoint dst 'b'\n") == []
        )

    def test_tables_exist(self) -> None:
        with pytest.raises(FormatError, match="there is no table node:Knows"):
            self.run("--- table node:Knows\n")


def test_rows_are_compared_by_their_fields_and_in_order_only_when_asked() -> None:
    first, second = {"a": 1, "b": None}, {"b": "é", "a": 2}
    assert row_lines([first, second], ordered=True) == ['{"a": 1, "b": null}', '{"a": 2, "b": "é"}']
    assert row_lines([second, first], ordered=False) == row_lines([first, second], ordered=False)
    assert row_lines([second, first], ordered=True) != row_lines([first, second], ordered=True)


def test_the_example_of_the_readme_comes_true() -> None:
    readme = (Path(__file__).parent / "corpus" / "README.md").read_text(encoding="utf-8")
    example = readme.split("```\n")[1]
    assert run_scenario(parse_scenario(example, "readme", "README.md")) == []
