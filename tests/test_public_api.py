"""What `import omnigraph` gives, and what it must not bring along."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import omnigraph
from omnigraph import blobs, errors, handle, keywords, lang, upkeep, versions
from omnigraph import spark as omnigraph_spark

SOURCES = Path(omnigraph.__file__).parent


def test_public_names_are_sorted_and_importable() -> None:
    for module in (omnigraph, errors, lang, omnigraph_spark):
        assert list(module.__all__) == sorted(module.__all__)
        assert all(hasattr(module, name) for name in module.__all__)


def test_importing_omnigraph_is_light() -> None:
    code = "import omnigraph, omnigraph.lang, sys; print('\\n'.join(sys.modules))"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"pyspark", "starlette", "uvicorn", "typer", "rich", "lance", "pyarrow", "urllib3", "omnigraph.cli"}
    assert heavy.isdisjoint(listed.split())


def test_help_needs_neither_language_nor_arrow() -> None:
    code = (
        "import sys\n"
        "from omnigraph.cli.main import app\n"
        "try:\n    app(['--help'])\nexcept SystemExit:\n    pass\n"
        "print('modules', *sys.modules)"
    )
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    modules = set(listed.splitlines()[-1].split())
    assert {"omnigraph.lang", "pyarrow", "pyspark", "urllib3"}.isdisjoint(modules)


LISTED = "import atexit, sys; atexit.register(lambda: print('modules', *sys.modules, sep='\\n'))\n"
"""Makes a process print the modules it has imported, last of all."""

NEVER = {
    "datafusion",
    "lance_namespace",
    "numpy.ma",
    "omnigraph.history",
    "omnigraph.maintenance",
    "omnigraph.spark",
    "omnigraph.write.evolution",
    "pandas",
    "polars",
    "pydantic",
    "pyspark",
    "rich",
    "urllib3",
}
"""What no command that reads or writes a row waits for, though some of it is installed."""

NOT_TO_READ = {
    "omnigraph.bulk.load",
    "omnigraph.lang.query.lint",
    "omnigraph.lang.schema.parser",
    "omnigraph.recovery",
    "omnigraph.write",
    "ulid",
}


NOT_TO_ASK = {
    "bz2",
    "difflib",
    "html",
    "lance.optimize",
    "lzma",
    "obstore",
    "omnigraph.embed",
    "omnigraph.lang.query.lowering.mutations",
    "omnigraph.lang.query.lowering.renaming",
    "omnigraph.lang.query.spelling",
    "omnigraph.lang.query.typecheck.mutations",
    "omnigraph.lang.query.typecheck.rankings",
    "omnigraph.manifest.migrations",
    "omnigraph.read.data.equality",
    "omnigraph.read.data.rewriting",
    "omnigraph.read.plan.searching",
    "omnigraph.read.run.computing",
    "omnigraph.read.run.intersection",
    "omnigraph.read.run.joining",
    "omnigraph.read.run.lookups",
    "omnigraph.read.run.search.scorers",
    "omnigraph.read.run.triangles",
    "omnigraph.read.text",
    "omnigraph.read.values.kernels",
    "omnigraph.read.values.vectors",
    "omnigraph.storage.control.remote",
    "omnigraph.storage.files.datafiles",
    "omnigraph.storage.files.deletions",
    "omnigraph.storage.forkpoints",
    "omnigraph.storage.locking.leases",
    "omnigraph.storage.rows.filters",
    "omnigraph.storage.rows.nearest",
    "omnigraph.storage.rows.row_ids",
    "omnigraph.storage.stage",
    "secrets",
    "tempfile",
}
"""What a plain question to a graph on a disk has no use for either."""


@pytest.mark.parametrize(
    ("verb", "text", "unwanted"),
    [
        ("query", "query q() { match { $p: Person } return { $p.name } }", NEVER | NOT_TO_READ),
        ("mutate", 'query m() { insert Person { name: "Bo" } }', NEVER - {"numpy.ma"}),
    ],
)
def test_a_command_imports_only_what_it_needs(tmp_path: Path, verb: str, text: str, unwanted: set[str]) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node Person { name: String @key }")
    graph.load([{"type": "Person", "data": {"name": "Ada"}}], mode="append")
    (tmp_path / "text.gq").write_text(text, encoding="utf-8")
    words = [verb, "--store", str(tmp_path / "g.omni"), "--query", str(tmp_path / "text.gq")]
    code = f"{LISTED}from omnigraph.cli.main import main\nsys.argv = {['omnigraph', *words]!r}\nmain()"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.partition("modules\n")[2].split())
    assert {"lance", "omnigraph.read.requests" if verb == "query" else "omnigraph.write.protocol"} <= modules
    assert find_spec("pandas") is not None, "or there is nothing that could have been imported"
    assert unwanted.isdisjoint(modules)


def _has_standard_dataclasses(path: Path) -> bool:
    text = (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8")
    imported = re.search(r"^from dataclasses import .*\bdataclass\b", text, re.MULTILINE)
    return imported is not None and "slots=True" in text


def test_a_program_that_opens_a_graph_and_asks_imports_only_what_it_needs(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node Person { name: String @key }")
    graph.load([{"type": "Person", "data": {"name": "Ada"}}], mode="append")
    code = (
        f"{LISTED}import omnigraph\n"
        f"graph = omnigraph.open({str(tmp_path / 'g.omni')!r})\n"
        "assert graph.query('query q() { match { $p: Person } return { $p.name as n } }').rows == [{'n': 'Ada'}]\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.partition("modules\n")[2].split())
    assert "lance" in modules
    own = filter(lambda name: name.startswith("omnigraph."), modules)
    early = {module for module in own if _has_standard_dataclasses(SOURCES.joinpath(*module.split(".")[1:]))}
    assert early == set(), "they take their dataclasses from omnigraph.records"
    assert (NEVER | NOT_TO_READ - {"omnigraph.recovery", "ulid"}).isdisjoint(modules)


def test_a_program_that_only_asks_imports_nothing_that_its_question_does_not_need(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path / "g.omni", "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
    )
    graph.load([{"type": "Person", "data": {"name": name, "age": 36}} for name in ("Ada", "Bo")], mode="append")
    graph.load([{"edge": "Knows", "from": "Ada", "to": "Bo"}], mode="append")
    code = (
        f"{LISTED}import omnigraph\n"
        f"graph = omnigraph.open({str(tmp_path / 'g.omni')!r}, read_only=True)\n"
        "found = graph.query('query q() { match { $p: Person  $p knows $q  $q.age > 30 } '\n"
        "    'return { $q.name as name, count($p) as times } order { times desc, name } limit 3 }')\n"
        "assert found.rows == [{'name': 'Bo', 'times': 1}]\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    modules = set(ran.stdout.partition("modules\n")[2].split())
    assert NOT_TO_ASK & modules == set()
    missing = [name for name in NOT_TO_ASK if find_spec(name) is None]
    assert not missing, "they have other names now"


@pytest.mark.parametrize(
    "before", ["", "import pandas", "import pyarrow", "import pyarrow as pa; pa.array([1])", "import lance"]
)
def test_arrow_recognises_values_of_pandas_whenever_that_is_imported(before: str) -> None:
    code = (
        f"{before}\n"
        "import omnigraph.storage, lance, sys, pyarrow as pa\n"
        "from importlib.util import find_spec\n"
        "assert find_spec('pandas') is not None and find_spec('pandas') is not None\n"
        f"assert ('pandas' in sys.modules) is {before not in ('', 'import pyarrow')}\n"
        "import pandas\n"
        "recognised = pa.array(pandas.Series([1.0, None]), from_pandas=None)\n"
        "assert recognised.null_count == 1, 'NaN in a series is a missing value, in a list it is not'\n"
        "frame = pandas.DataFrame({'a': [1]})\n"
        "assert pa.Table.from_pandas(frame).to_pandas().equals(frame)\n"
        "assert lance.dataset is not None and pandas.__spec__.loader.get_filename('pandas') == pandas.__file__\n"
        "assert not any(type(finder).__module__.startswith('omnigraph') for finder in sys.meta_path)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_arrow_converts_to_pandas_that_the_program_has_not_imported() -> None:
    code = (
        "import omnigraph.storage, sys, pyarrow as pa\n"
        "assert 'pandas' not in sys.modules\n"
        "assert list(pa.array([1, 2]).to_pandas()) == [1, 2]\n"
        "assert pa.array(sys.modules['pandas'].Series([1.0, None])).null_count == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_modules_stay_short_and_say_what_they_are() -> None:
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 600, f"{path.name} has grown into two modules"
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), f"{path.name} has no docstring"
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}


def test_whatever_a_graph_takes_or_returns_can_be_imported_from_its_public_places() -> None:
    public = {
        id(getattr(module, name))
        for module in (omnigraph, lang, omnigraph_spark, errors)
        for name in getattr(module, "__all__", dir(module))
    }
    for holder in (omnigraph.Graph, omnigraph.AsyncGraph, omnigraph.Result, omnigraph_spark.SparkGraph):
        for name, method in inspect.getmembers(holder, callable):
            if name.startswith("_") or not hasattr(method, "__annotations__"):
                continue
            for hint in get_type_hints(method, _typing_names(holder)).values():
                for kind in _classes(hint):
                    assert not kind.__module__.startswith("omnigraph") or id(kind) in public, (name, kind)


def _typing_names(holder: type) -> dict[str, object]:
    """What annotations of a class may name that is imported for type checkers only."""
    import pandas
    import polars
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from omnigraph.bulk.load.inputs import Data
    from omnigraph.bulk.load.sources.description import Location, Rows
    from omnigraph.bulk.load.sources.finding import Sources
    from omnigraph.maintenance.cleanup.retention import Duration
    from omnigraph.maintenance.doctor.report import ProgressListener

    module = sys.modules[holder.__module__]
    seen = {"DataFrame": DataFrame, "SparkSession": SparkSession, "StreamingQuery": StreamingQuery}
    others = {"pd": pandas, "pl": polars, "SparkGraph": omnigraph_spark.SparkGraph}
    aliases = {"Data": Data, "Duration": Duration, "Location": Location, "Rows": Rows, "Sources": Sources}
    aliases["ProgressListener"] = ProgressListener
    own = {name: getattr(omnigraph, name) for name in omnigraph.__all__}
    return {
        **own,
        **seen,
        **others,
        **aliases,
        **vars(handle),
        **vars(versions),
        **vars(upkeep),
        **vars(blobs),
        **vars(module),
        **vars(keywords),
    }


def _classes(hint: object) -> Iterator[type]:
    """All classes that a type hint mentions."""
    if isinstance(hint, type):
        yield hint
    for part in get_args(hint):
        yield from _classes(part)
