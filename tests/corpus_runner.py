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
``query [name]``       a .gq text with a read: ``error``, ``plan``, ``columns``, ``reads``, ``rows``
``mutate [name]``      a .gq text with a mutation: as above, ``writes`` and ``affected`` for ``rows``
``lint``               a .gq file checked against the schema: ``findings``
``migrate [hard]``     a .pg text planned against the current schema: ``error``, ``steps``
``fmt pg|gq``          a text to format: ``error``, ``text``
=====================  ==========================================================================

``note`` is a remark to the reader; ``params`` gives a query its parameters, and giving them again behind the
expectations runs the same query again. Each line of ``error`` is `CODE line:column  part of the message or
help`, with places counted within the step's own body, or `param NAME  part of the reason`.

``rows`` and ``affected`` need an engine. Every entry of ENGINES runs every scenario; while there is none, such
steps are compiled and their parameters bound, and no more is claimed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from tests.corpus_format import Run, Scenario, Section, Step
from tests.corpus_text import (
    catalog_lines,
    error_lines,
    finding_lines,
    matches_error,
    row_lines,
    table_list,
)

from omnigraph.errors import LanguageError, ParameterError
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import first_identities
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import compile_schema

if TYPE_CHECKING:
    from omnigraph.lang.query.compile import CompiledQuery


class Engine(Protocol):
    """A graph that can be loaded, read and changed."""

    def load(self, jsonl: str) -> None:
        """Add the records."""

    def query(self, text: str, name: str | None, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The rows of a read."""

    def mutate(self, text: str, name: str | None, params: Mapping[str, Any]) -> tuple[int, int]:
        """How many nodes and edges a mutation affected."""


_T = TypeVar("_T")
OpenEngine = Callable[[str], Engine]

ENGINES: Final[Mapping[str, OpenEngine]] = {}
"""By name: how to open an empty graph with a schema text."""


class Mismatch(Exception):
    """What a scenario expects is not what happens."""

    def __init__(self, section: Section, reason: str, expected: list[str], actual: list[str]) -> None:
        blocks = [f"{section.place}: {reason}"]
        for title, lines in (("expected", expected), ("actual", actual)):
            if lines:
                blocks.append("\n".join([f"  {title}:", *(f"    {line}" for line in lines)]))
        super().__init__("\n".join(blocks))


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
        self.engine: Engine | None = None
        self.current: Catalog | None = None

    def run(self, step: Step) -> None:
        handlers: Mapping[str, Callable[[Step], None]] = {
            "schema": self._schema,
            "data": self._data,
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
        ir = _attempt(step, lambda: first_identities(compile_schema(text)))
        if ir is None:
            return
        self.current = Catalog(ir)
        self.engine = self.open_engine(text) if self.open_engine else None
        for run in step.runs:
            _expect(run, "catalog", catalog_lines(ir.shape))

    def _data(self, step: Step) -> None:
        self._catalog(step)
        for line in step.section.lines:
            if not line.lstrip().startswith("//"):
                _json(step.section, line)
        if self.engine:
            self.engine.load(step.section.body)

    def _query(self, step: Step) -> None:
        from omnigraph.lang.query.compile import compile_mutation, compile_query, compile_read
        from omnigraph.lang.query.explain import explain_ir

        section, catalog = step.section, self._catalog(step)
        name = section.argument or None
        strict = compile_read if section.kind == "query" else compile_mutation
        compiler = compile_query if step.expected_error is None else strict
        compiled = _attempt(step, lambda: compiler(section.body, catalog, name))
        if compiled is None:
            return
        wanted = "read" if section.kind == "query" else "mutation"
        if compiled.kind != wanted:
            raise Mismatch(section, f"query {compiled.name} is a {compiled.kind}, not a {wanted}", [], [])
        operation = compiled.operation.as_json()
        for run in step.runs:
            if "plan" in run.expectations:
                _expect(run, "plan", explain_ir(compiled.ir).rstrip().splitlines())
            _expect(run, "columns", [", ".join(column["name"] for column in operation["result"])])
            _expect(run, "reads", [table_list(operation["reads"])])
            _expect(run, "writes", [table_list(operation["writes"])])
            self._outcome(section, run, compiled)

    def _outcome(self, section: Section, run: Run, compiled: CompiledQuery) -> None:
        """Bind the parameters of a run, and execute it where there is an engine."""
        from omnigraph.lang.parameters import bind_parameters

        outcome = run.expectations.keys() & {"rows", "affected"}
        if run.params is None and not outcome:
            return
        given = json.loads(run.params.body) if run.params else {}
        try:
            bind_parameters(compiled.name, compiled.params, given)
        except ParameterError as error:
            _check_error(run.params or section, run.expectations.get("error"), error)
            return
        if "error" in run.expectations:
            expected = run.expectations["error"]
            raise Mismatch(expected, "the parameters fit, but should not", expected.lines, [])
        if self.engine is None or not outcome:
            return
        name = section.argument or None
        if "affected" in outcome:
            nodes, edges = self.engine.mutate(section.body, name, given)
            _expect(run, "affected", [f"nodes {nodes}, edges {edges}"])
        else:
            self._rows(run.expectations["rows"], self.engine.query(section.body, name, given))

    @staticmethod
    def _rows(section: Section, rows: list[dict[str, Any]]) -> None:
        expected = row_lines([_json(section, line) for line in section.lines], section.argument == "ordered")
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
                _expect(run, "findings", found)
            elif report["status"] != "ok":
                raise Mismatch(section, "the file has errors", [], found)

    def _migrate(self, step: Step) -> None:
        accepted = self._catalog(step).ir
        text, hard = step.section.body, step.section.argument == "hard"
        plan = _attempt(step, lambda: plan_migration(accepted, compile_schema(text), allow_data_loss=hard))
        if plan is not None:
            for run in step.runs:
                _expect(run, "steps", [str(s) for s in plan.steps])

    def _fmt(self, step: Step) -> None:
        """Format a text; formatting the result again must not change it."""
        if step.section.argument == "pg":
            from omnigraph.lang.schema.format import format_schema as formatter
        else:
            from omnigraph.lang.query.format import format_queries as formatter
        text = _attempt(step, lambda: formatter(step.section.body))
        if text is None:
            return
        if (again := formatter(text)) != text:
            raise Mismatch(
                step.section, "formatting twice is not formatting once", text.splitlines(), again.splitlines()
            )
        for run in step.runs:
            _expect(run, "text", text.rstrip("\n").splitlines())


def _attempt(step: Step, action: Callable[[], _T]) -> _T | None:
    """Do what the step says; None if it failed, as expected."""
    expected = step.expected_error
    try:
        done = action()
    except LanguageError as error:
        _check_error(step.section, expected, error)
        return None
    if expected is not None:
        raise Mismatch(expected, "this succeeds, but should fail", expected.lines, [])
    return done


def _check_error(section: Section, expected: Section | None, error: LanguageError | ParameterError) -> None:
    actual = error_lines(error)
    if expected is None:
        raise Mismatch(section, "this fails, but should not", [], str(error).splitlines())
    if not matches_error(expected, error):
        raise Mismatch(expected, "other problems", expected.lines, actual)


def _expect(run: Run, kind: str, actual: list[str]) -> None:
    """Compare the lines of an expectation, if the run has it."""
    section = run.expectations.get(kind)
    if section is None:
        return
    expected = [line.rstrip() for line in section.body.splitlines()]
    if expected != ([] if actual == [""] else actual):
        raise Mismatch(section, f"other {kind}", expected, actual)


def _json(section: Section, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise section.wrong(f"not JSON: {line} ({error})") from None
    if not isinstance(value, dict):
        raise section.wrong(f"not a JSON object: {line}")
    return value
