"""`omnigraph policy`: check a policy, test it, and ask it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.errors import InvalidArgument
from omnigraph.policy.actions import Action

app = typer.Typer(help="Check, test and ask a policy.", no_args_is_help=True)
File = Annotated[Path, typer.Argument(metavar="POLICY", help="A policy.yaml.")]


@app.command()
@reports_errors
def validate(
    file: File,
    cedar: Annotated[bool, typer.Option("--cedar", help="Show what the rules become in Cedar.")] = False,
    as_json: Json = False,
) -> None:
    """Check a policy: its fields, its names, and Cedar's own strict checks. Exit code 1 if anything is wrong."""
    from omnigraph.policy.cedar import cedar_text
    from omnigraph.policy.policy import read_policy

    found = read_policy(file).file
    counts = {"rules": len(found.rules), "groups": len(found.groups), "actors": len(found.actors)}
    if as_json:
        print_json({"status": "ok", "policy": str(file), **counts, "protected_branches": sorted(found.protected)})
        return
    if cedar:
        print_text(cedar_text(found))
    print_text(f"{file}: ", styled("ok", "green"), f", {', '.join(f'{n} {name}' for name, n in counts.items())}")


@app.command("test")
@reports_errors
def run_tests(
    file: File,
    tests: Annotated[Path, typer.Option("--tests", help="A YAML file of cases, each with what is expected.")],
    as_json: Json = False,
) -> None:
    """Ask a policy about every case of a file. Exit code 1 if one is decided otherwise than expected."""
    from omnigraph.policy.cases import read_cases, run_cases
    from omnigraph.policy.policy import read_policy

    outcomes = run_cases(read_policy(file), read_cases(tests))
    failed = [each for each in outcomes if not each.is_as_expected]
    if as_json:
        listed = [{"id": each.case.id, "ok": each.is_as_expected, **each.decision.as_json()} for each in outcomes]
        print_json({"status": "failed" if failed else "ok", "failed": len(failed), "cases": listed})
    else:
        for each in failed:
            wanted = "allow" if each.case.is_allowed else "deny"
            said = f"{each.case.id}: expected {wanted}, but {each.decision.message}"
            print_text(styled("failed ", "bold red"), said)
        print_text(f"{len(outcomes) - len(failed)} of {len(outcomes)} cases are as expected")
    if failed:
        raise typer.Exit(1)


@app.command()
@reports_errors
def explain(
    file: File,
    actor: Annotated[str, typer.Option("--actor", help="Who wants to do it.")],
    action: Annotated[str, typer.Option("--action", help="What: read, change, branch_merge, ….")],
    branch: Annotated[str | None, typer.Option("--branch", help="On which branch.")] = None,
    target_branch: Annotated[str | None, typer.Option("--target-branch", help="Towards which branch.")] = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Which type: Person, edge:Knows.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a policy decides, and by which rule."""
    from omnigraph.policy.cases import table_key
    from omnigraph.policy.policy import Question, read_policy, trimmed

    known = {each.value: each for each in Action}
    if action not in known:
        raise InvalidArgument("action", f"'{action}' is none; there are {', '.join(known)}")
    question = Question(actor, known[action], trimmed(branch), trimmed(target_branch), table_key(type_name))
    decision = read_policy(file).decide(question)
    if as_json:
        print_json(decision.as_json())
        return
    answer = styled("allowed", "green") if decision.allowed else styled("denied", "bold red")
    print_text(answer, f": {decision.message}")


@app.command("actions")
@reports_errors
def actions(as_json: Json = False) -> None:
    """List the actions that rules can allow, and what a rule about each may say."""
    from omnigraph.policy.actions import ON_BRANCH, ON_TYPES, TO_BRANCH

    rows = [
        (
            each.value,
            "branch" if each in ON_BRANCH else "target branch" if each in TO_BRANCH else "",
            "types" if each in ON_TYPES else "",
        )
        for each in Action
    ]
    if as_json:
        print_json({"actions": [{"action": a, "scope": b or None, "types": bool(c)} for a, b, c in rows]})
    else:
        print_table(("action", "scope", "types"), rows)
