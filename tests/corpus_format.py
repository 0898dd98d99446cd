"""Reading scenario files: a title, some prose, and sections that form steps and what is expected of them.

The notation is described in ``corpus_runner`` and, for authors, in ``corpus/README.md``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

STEPS: Final[Mapping[str, frozenset[str]]] = {
    "schema": frozenset({"error", "catalog"}),
    "data": frozenset(),
    "load": frozenset({"error", "loaded"}),
    "table": frozenset(),
    "query": frozenset({"error", "plan", "columns", "reads", "writes", "rows"}),
    "mutate": frozenset({"error", "plan", "columns", "reads", "writes", "affected"}),
    "lint": frozenset({"findings"}),
    "migrate": frozenset({"error", "steps"}),
    "fmt": frozenset({"error", "text"}),
}
"""The kinds of steps, and the expectations each may carry."""

EXPECTATIONS: Final = frozenset[str]().union(*STEPS.values())


def _no_argument(argument: str) -> bool:
    return argument == ""


_ARGUMENTS: Final[Mapping[str, Callable[[str], bool]]] = {
    "note": lambda _: True,
    "query": lambda argument: " " not in argument,
    "mutate": lambda argument: " " not in argument,
    "load": lambda argument: argument in ("overwrite", "append", "merge"),
    "table": lambda argument: argument.startswith(("node:", "edge:")),
    "migrate": lambda argument: argument in ("", "hard"),
    "fmt": lambda argument: argument in ("pg", "gq"),
    "rows": lambda argument: argument in ("", "ordered"),
}


_ABOUT_DATA: Final = frozenset({"violation", "record", "conflict", "refused", "more"})


class FormatError(Exception):
    """A scenario file is not written as scenario files are. The message begins with the place."""


@dataclass(frozen=True, slots=True)
class Section:
    """One `--- kind argument` line and the text below it."""

    kind: str
    argument: str
    body: str
    file: str
    line: int

    @property
    def place(self) -> str:
        """Where the section begins, as editors understand it."""
        return f"{self.file}:{self.line}"

    @property
    def lines(self) -> list[str]:
        """The lines that are not blank."""
        return [line.rstrip() for line in self.body.splitlines() if line.strip()]

    def wrong(self, reason: str) -> FormatError:
        """An error of the file, at this section."""
        return FormatError(f"{self.place}: {reason}")


@dataclass(slots=True)
class Run:
    """One use of a step: the parameters, if any, and what is expected."""

    params: Section | None = None
    expectations: dict[str, Section] = field(default_factory=dict)


@dataclass(slots=True)
class Step:
    """A section that does something. ``note`` is the remark last made above it."""

    section: Section
    note: str
    runs: list[Run]

    @property
    def expected_error(self) -> Section | None:
        """The `--- error` section, if the step itself (not one set of parameters) must fail."""
        error = self.runs[0].expectations.get("error")
        return error if error is not None and self.runs[0].params is None else None

    @property
    def expected_mistake(self) -> Section | None:
        """The expected error, unless it is one that only data shows."""
        error = self.expected_error
        return None if error is None or is_about_data(error) else error


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole file."""

    name: str
    title: str
    description: str
    steps: tuple[Step, ...]


def is_about_data(expected: Section) -> bool:
    """Does an `--- error` section expect data to be refused, rather than a text or a parameter?"""
    return all(line.split()[0] in _ABOUT_DATA for line in expected.lines)


def read_scenario(path: Path, root: Path) -> Scenario:
    """Read a scenario file; its name is its path below the root, without the suffix."""
    relative = path.relative_to(root)
    return parse_scenario(
        path.read_text(encoding="utf-8"), str(relative.with_suffix("")), f"{root.name}/{relative}"
    )


def parse_scenario(text: str, name: str, file: str) -> Scenario:
    """Parse the text of a scenario file; FormatError says what is wrong and where."""
    prose, sections = _split(text, file)
    if not prose or not prose[0].startswith("= "):
        raise FormatError(f"{file}:1: a scenario begins with a title line, such as `= Keys`")
    if not sections:
        raise FormatError(f"{file}:1: a scenario needs at least one section, such as `--- schema`")
    description = "\n".join(prose[1:]).strip()
    return Scenario(name, prose[0][2:].strip(), description, tuple(_steps(sections)))


def _split(text: str, file: str) -> tuple[list[str], list[Section]]:
    """The prose before the first section, and the sections."""
    prose: list[str] = []
    sections: list[Section] = []
    heading: tuple[str, str, int] | None = None
    body: list[str] = []

    def close() -> None:
        if heading is not None:
            sections.append(Section(heading[0], heading[1], "\n".join(body).rstrip(), file, heading[2]))

    for number, line in enumerate(text.splitlines(), start=1):
        if line == "---" or line.startswith("--- "):
            close()
            kind, _, argument = line[4:].strip().partition(" ")
            heading, body = (kind, argument.strip(), number), []
        elif heading is None:
            prose.append(line)
        else:
            body.append(line)
    close()
    return prose, sections


def _steps(sections: list[Section]) -> list[Step]:
    """Group the sections: each step with the parameters and expectations that follow it."""
    steps: list[Step] = []
    note = ""
    for section in sections:
        if not _ARGUMENTS.get(section.kind, _no_argument)(section.argument):
            raise section.wrong(f"`--- {section.kind}` does not take `{section.argument}`")
        if section.kind == "note":
            note = " ".join([section.argument, *section.lines]).strip()
        elif section.kind in STEPS:
            steps.append(Step(section, note, [Run()]))
        elif not steps:
            raise section.wrong(f"`--- {section.kind}` comes before any step")
        elif section.kind == "params":
            _add_params(steps[-1], section)
        elif section.kind in EXPECTATIONS:
            _add_expectation(steps[-1], section)
        else:
            known = ", ".join(sorted(EXPECTATIONS | STEPS.keys() | {"note", "params"}))
            raise section.wrong(f"unknown section `--- {section.kind}` (known: {known})")
    return steps


def _add_params(step: Step, section: Section) -> None:
    """Parameters start another run of the query, unless the first run has nothing yet."""
    if step.section.kind not in ("query", "mutate"):
        raise section.wrong(f"`--- params` belongs to a query, not to `--- {step.section.kind}`")
    try:
        given = json.loads(section.body)
    except ValueError as error:
        raise section.wrong(f"the parameters are not JSON: {error}") from None
    if not isinstance(given, dict):
        raise section.wrong("the parameters are a JSON object")
    if step.runs[-1].params is None and not step.runs[-1].expectations:
        step.runs[-1].params = section
    else:
        step.runs.append(Run(section))


def _add_expectation(step: Step, section: Section) -> None:
    run = step.runs[-1]
    if section.kind not in STEPS[step.section.kind]:
        raise section.wrong(f"`--- {step.section.kind}` has no `--- {section.kind}`")
    if section.kind in run.expectations:
        raise section.wrong(f"`--- {section.kind}` is given twice")
    if section.kind == "error" and not section.lines:
        raise section.wrong("`--- error` lists the expected problems, one per line")
    if run.expectations and "error" in {section.kind, *run.expectations}:
        raise section.wrong("`--- error` stands alone: what fails has no other outcome")
    run.expectations[section.kind] = section
