"""What `import omnigraph` gives, and what it must not bring along."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import omnigraph
from omnigraph import lang

SOURCES = Path(omnigraph.__file__).parent


def test_public_names_are_sorted_and_importable() -> None:
    for module in (omnigraph, lang):
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


def test_modules_stay_short_and_say_what_they_are() -> None:
    for path in SOURCES.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 600, f"{path.name} has grown into two modules"
        if text.strip():
            assert ast.get_docstring(ast.parse(text)), f"{path.name} has no docstring"
        assert path.stem not in {"utils", "util", "helpers", "common", "misc"}
