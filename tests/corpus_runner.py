"""Running scenario files (`tests/corpus/**/*.gqt`): whole stories about the two languages, as plain text.

A file begins with `= Title` and some prose. Then come sections, each a line `--- kind argument` and a body::

    = Keys
    What makes a node the node it is.

    --- note A key may not be null
    --- schema
    node Person { name: String? @key }
    --- error
    S122 1:29  may be null

Steps (each may be followed by the expectations named behind it; without any it must simply succeed):

=====================  ==========================================================================
``schema``             a .pg text, from here on the current schema: ``error``, ``catalog``
``data``               JSONL records for the graph
``load MODE``          JSONL records, loaded in a mode: ``error``, ``loaded``
``table KEY``          the rows a table must have by now
``query [name]``       a .gq text with a read: ``error``, ``plan``, ``columns``, ``reads``, ``rows``
``mutate [name]``      a .gq text with a mutation: as above, ``writes`` and ``affected`` for ``rows``
``lint``               a .gq file checked against the schema: ``findings``
``migrate [hard]``     a .pg text planned against the current schema: ``error``, ``steps``
``fmt pg|gq``          a text to format: ``error``, ``text``
=====================  ==========================================================================

``note`` is a remark to the reader; ``params`` gives a query its parameters, and giving them again behind the
expectations runs the same query again. Each line of ``error`` is `CODE line:column  part of the message or
help`, with places counted within the step's own body, or `param NAME  part of the reason`. A write that is
refused for its data says `violation RULE part`, `record LINE part`, `conflict part` or `refused part`.

What concerns data needs an engine. Every entry of ENGINES runs every scenario, after it has been run without one:
then such steps are compiled and their parameters bound, and no more is claimed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from tests.corpus_checks import Mismatch, attempted, check_error, expect, json_object, written
from tests.corpus_engine import GraphEngine
from tests.corpus_format import Run, Scenario, Section, Step, is_about_data
from tests.corpus_text import catalog_lines, finding_lines, row_lines, table_list
from tests.read.engine import ReferenceEngine

from omnigraph.errors import ParameterError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import first_identities
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

if TYPE_CHECKING:
    from omnigraph.lang.query.compile import CompiledQuery


class Engine(Protocol):
    """A graph that can be loaded, read and changed. A write that is refused raises a DataError."""

    @property
    def reads(self) -> bool:
        """Can it answer queries yet?"""

    def load(self, jsonl: str, mode: str) -> list[str]:
        """Load the records; how many of each type, as lines."""

    def table(self, table_key: str) -> list[dict[str, Any]]:
        """The rows of a table, by id."""

    def query(self, text: str, name: str | None, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a read."""

    def mutate(self, text: str, name: str | None, params: Mapping[str, Any]) -> tuple[int, int]:
        """How many nodes and edges a mutation affected."""


OpenEngine = Callable[[str], Engine]

ENGINES: Final[Mapping[str, OpenEngine]] = {"memory": GraphEngine, "reference": ReferenceEngine}
"""By name: how to open an empty graph with a schema text."""


def run_scenario(scenario: Scenario, open_engine: OpenEngine | None = None) -> list[str]:
    """Run all steps of a scenario; one text for each that does not do what is expected."""
    runner = _Runner(open_engine)
    failures: list[str] = []
    for step in scenario.steps:
        try:
            runner.run(step)
        except Mismatch as mismatch:
            note = f"\n  note: {step.note}" if step.note else ""
            failures.append(f"{mismatch}{note}")
    return failures


class _Runner:
    """The state of one scenario: its current schema, and the graph if there is an engine."""

    def __init__(self, open_engine: OpenEngine | None) -> None:
        self.open_engine = open_engine
        self.text = ""
        self.opened: Engine | None = None
        self.current: Catalog | None = None

    @property
    def engine(self) -> Engine | None:
        """The graph, made when it is first needed."""
        if self.opened is None and self.open_engine is not None:
            self.opened = self.open_engine(self.text)
        return self.opened

    def run(self, step: Step) -> None:
        handlers: Mapping[str, Callable[[Step], None]] = {
            "schema": self._schema,
            "data": self._load,
            "load": self._load,
            "table": self._table,
            "query": self._query,
            "mutate": self._query,
            "lint": self._lint,
            "migrate": self._migrate,
            "fmt": self._fmt,
        }
        handlers[step.section.kind](step)

    def _catalog(self, step: Step) -> Catalog:
        if self.current is None:
            raise step.section.wrong("there is no schema yet; begin with `--- schema`")
        return self.current

    def _schema(self, step: Step) -> None:
        """A schema that is refused leaves the current one in place."""
        text = step.section.body
        ir = attempted(step, lambda: first_identities(compile_schema(text)))
        if ir is None:
            return
        self.current = Catalog(ir)
        self.text, self.opened = text, None
        for run in step.runs:
            expect(run, "catalog", catalog_lines(ir.shape))

    def _load(self, step: Step) -> None:
        self._catalog(step)
        section, [run] = step.section, step.runs
        if "error" not in run.expectations:
            for line in section.lines:
                if not line.lstrip().startswith("//"):
                    json_object(section, line)
        if self.engine:
            engine, mode = self.engine, section.argument or "append"
            counts = written(section, run, lambda: engine.load(section.body, mode))
            if counts is not None:
                expect(run, "loaded", counts)

    def _table(self, step: Step) -> None:
        catalog, key = self._catalog(step), step.section.argument
        if key not in {f"node:{name}" for name in catalog.nodes} | {f"edge:{name}" for name in catalog.edges}:
            raise step.section.wrong(f"there is no table {key}")
        expected = row_lines([json_object(step.section, line) for line in step.section.lines], ordered=True)
        if self.engine and expected != (actual := row_lines(self.engine.table(key), ordered=True)):
            raise Mismatch(step.section, "other rows", expected, actual)

    def _query(self, step: Step) -> None:
        from omnigraph.lang.query.compile import compile_mutation, compile_query, compile_read
        from omnigraph.lang.query.explain import explain_ir

        section, catalog = step.section, self._catalog(step)
        name = section.argument or None
        strict = compile_read if section.kind == "query" else compile_mutation
        compiler = compile_query if step.expected_mistake is None else strict
        compiled = attempted(step, lambda: compiler(section.body, catalog, name))
        if compiled is None:
            return
        wanted = "read" if section.kind == "query" else "mutation"
        if compiled.kind != wanted:
            raise Mismatch(section, f"query {compiled.name} is a {compiled.kind}, not a {wanted}", [], [])
        operation = compiled.operation.as_json()
        for run in step.runs:
            if "plan" in run.expectations:
                expect(run, "plan", explain_ir(compiled.ir).rstrip().splitlines())
            expect(run, "columns", [", ".join(column["name"] for column in operation["result"])])
            expect(run, "reads", [table_list(operation["reads"])])
            expect(run, "writes", [table_list(operation["writes"])])
            self._outcome(section, run, compiled)

    def _outcome(self, section: Section, run: Run, compiled: CompiledQuery) -> None:
        """Bind the parameters of a run, and execute it where there is an engine."""
        from omnigraph.lang.parameters import bind_parameters

        outcome = run.expectations.keys() & {"rows", "affected", "error"}
        if run.params is None and not outcome:
            return
        given = json.loads(run.params.body) if run.params else {}
        try:
            bind_parameters(compiled.name, compiled.params, given)
        except ParameterError as error:
            check_error(run.params or section, run.expectations.get("error"), error)
            return
        expected = run.expectations.get("error")
        if expected is not None and not is_about_data(expected):
            raise Mismatch(expected, "the parameters fit, but should not", expected.lines, [])
        engine, name = self.engine if outcome else None, section.argument or None
        if engine is None:
            return
        if compiled.kind == "mutation":
            affected = written(section, run, lambda: engine.mutate(section.body, name, given))
            if affected is not None:
                expect(run, "affected", ["nodes {}, edges {}".format(*affected)])
        elif engine.reads:
            self._rows(run.expectations["rows"], engine.query(section.body, name, given))

    @staticmethod
    def _rows(section: Section, rows: list[dict[str, Any]]) -> None:
        expected = row_lines([json_object(section, line) for line in section.lines], section.argument == "ordered")
        actual = row_lines(rows, section.argument == "ordered")
        if expected != actual:
            raise Mismatch(section, "other rows", expected, actual)

    def _lint(self, step: Step) -> None:
        from omnigraph.lang.query.lint import lint_queries

        section = step.section
        report = lint_queries(section.body, self._catalog(step), section.file, "schema.pg").as_json()
        found = finding_lines(report)
        for run in step.runs:
            if "findings" in run.expectations:
                expect(run, "findings", found)
            elif report["status"] != "ok":
                raise Mismatch(section, "the file has errors", [], found)

    def _migrate(self, step: Step) -> None:
        accepted = self._catalog(step).ir
        text, hard = step.section.body, step.section.argument == "hard"
        plan = attempted(step, lambda: plan_migration(accepted, compile_schema(text), allow_data_loss=hard))
        if plan is not None:
            for run in step.runs:
                expect(run, "steps", [str(s) for s in plan.steps])

    def _fmt(self, step: Step) -> None:
        """Format a text; formatting the result again must not change it."""
        if step.section.argument == "pg":
            from omnigraph.lang.schema.format import format_schema as formatter
        else:
            from omnigraph.lang.query.format import format_queries as formatter
        text = attempted(step, lambda: formatter(step.section.body))
        if text is None:
            return
        if (again := formatter(text)) != text:
            raise Mismatch(
                step.section, "formatting twice is not formatting once", text.splitlines(), again.splitlines()
            )
        for run in step.runs:
            expect(run, "text", text.rstrip("\n").splitlines())
