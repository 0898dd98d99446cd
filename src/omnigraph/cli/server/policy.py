"""`omnigraph policy`: check a policy, test it, and ask it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import cluster_place
from omnigraph.errors import InvalidArgument
from omnigraph.policy.actions import Action

if TYPE_CHECKING:
    from omnigraph.policy.policy import Policy

app = typer.Typer(help="Check, test and ask a policy.", no_args_is_help=True)
File = Annotated[
    Path | None,
    typer.Argument(
        metavar="POLICY", help="A policy.yaml. Without it: the one that a cluster has.", show_default=False
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="NAME|PLACE", help="The cluster whose applied policy is meant."),
]
Graph = Annotated[
    str | None,
    typer.Option("--graph", metavar="ID", help="Which graph of it. Default: the policy of the cluster itself."),
]


def _policy(file: Path | None, cluster: str | None, graph: str | None) -> Policy:
    """The policy of a file, or the one that a cluster has applied to a graph or to itself."""
    from omnigraph.policy.policy import Policy, read_policy

    if (file is None) == (cluster is None):
        raise typer.BadParameter("name a policy.yaml, or a cluster with --cluster")
    if file is not None:
        if graph is not None:
            raise typer.BadParameter("--graph chooses among the graphs of a cluster")
        return read_policy(file)
    from omnigraph.cluster.configuration.config import CLUSTER
    from omnigraph.cluster.serving import applied_policy

    assert cluster is not None  # noqa: S101  one of the two is named
    found = applied_policy(cluster_place(cluster), graph or CLUSTER)
    return Policy(found.text, found.source)


@app.command()
@reports_errors
def validate(
    file: File = None,
    cluster: Cluster = None,
    graph: Graph = None,
    cedar: Annotated[bool, typer.Option("--cedar", help="Show what the rules become in Cedar.")] = False,
    as_json: Json = False,
) -> None:
    """Check a policy: its fields, its names, and Cedar's own strict checks. Exit code 1 if anything is wrong."""
    from omnigraph.policy.cedar import cedar_text

    policy = _policy(file, cluster, graph)
    found = policy.file
    counts = {"rules": len(found.rules), "groups": len(found.groups), "actors": len(found.actors)}
    if as_json:
        print_json(
            {"status": "ok", "policy": policy.source, **counts, "protected_branches": sorted(found.protected)}
        )
        return
    if cedar:
        print_text(cedar_text(found))
    print_text(
        f"{policy.source}: ",
        styled("ok", "green"),
        f", {', '.join(counted(n, name.removesuffix('s')) for name, n in counts.items())}",
    )


@app.command("test")
@reports_errors
def run_tests(
    tests: Annotated[Path, typer.Option("--tests", help="A YAML file of cases, each with what is expected.")],
    file: File = None,
    cluster: Cluster = None,
    graph: Graph = None,
    as_json: Json = False,
) -> None:
    """Ask a policy about every case of a file. Exit code 1 if one is decided otherwise than expected."""
    from omnigraph.policy.cases import read_cases, run_cases

    outcomes = run_cases(_policy(file, cluster, graph), read_cases(tests))
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
    actor: Annotated[str, typer.Option("--actor", help="Who wants to do it.")],
    action: Annotated[str, typer.Option("--action", help="What: read, change, branch_merge, ….")],
    file: File = None,
    cluster: Cluster = None,
    graph: Graph = None,
    branch: Annotated[str | None, typer.Option("--branch", help="On which branch.")] = None,
    target_branch: Annotated[str | None, typer.Option("--target-branch", help="Towards which branch.")] = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Which type: Person, edge:Knows.")] = None,
    as_json: Json = False,
) -> None:
    """Say what a policy decides, and by which rule."""
    from omnigraph.policy.cases import table_key
    from omnigraph.policy.policy import Question, trimmed

    known = {each.value: each for each in Action}
    if action not in known:
        raise InvalidArgument("action", f"'{action}' is none; there are {', '.join(known)}")
    question = Question(actor, known[action], trimmed(branch), trimmed(target_branch), table_key(type_name))
    decision = _policy(file, cluster, graph).decide(question)
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
