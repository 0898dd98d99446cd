"""The container file: what it names is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_container_file_names_what_is_there() -> None:
    """Its commands were run by hand in a fresh environment; here only what can go stale is looked at."""
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    for source in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE):
        for name in source.split():
            assert (ROOT / name).exists(), name
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    assert json.loads(entry)[0].endswith("/omnigraph")
    (extras,) = re.findall(r"\.\[([a-z,]+)\]", text)
    known = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras.split(","):
        assert f"\n{extra} = [" in known
