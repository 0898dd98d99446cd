"""How Arrow meets pandas: when a program imports pandas, not when Arrow converts its first list.

Arrow imports pandas, if that is installed, only to recognise its values among those it is given. There are none in
a program that has not imported pandas, and importing it takes longer than a small query.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_PANDAS = "pandas"


class _Unseen:
    """A finder of modules from which one thread learns that pandas is not installed."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        if name == _PANDAS and threading.get_ident() == self._thread:
            raise ModuleNotFoundError("Arrow is to do without pandas until the program imports it", name=name)
        return None


class _Announced:
    """A finder of modules that finds pandas where the others do, and tells Arrow once it has been imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _PANDAS:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        found = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        loader = None if found is None else found.loader
        if loader is not None:
            run = loader.exec_module

            def run_and_announce(module: ModuleType) -> None:
                run(module)
                sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
                _introduce()

            loader.exec_module = run_and_announce  # type: ignore[method-assign]
        return found


def _introduce() -> None:
    """Make Arrow recognise the values of pandas, which its conversions to pandas do as well."""
    from pyarrow.lib import _pandas_api

    if not _pandas_api.have_pandas:
        _pandas_api.pd  # noqa: B018  reading it imports what Arrow needs of pandas


def wait_for_pandas() -> None:
    """Let Arrow do its first conversion without pandas, and learn of pandas when the program imports it."""
    if _PANDAS in sys.modules or any(isinstance(finder, _Announced) for finder in sys.meta_path):
        return
    import pyarrow as pa

    if not hasattr(type(getattr(pa.lib, "_pandas_api", None)), "pd"):
        return  # an Arrow that could not be told of pandas later keeps its own way
    unseen = _Unseen()
    sys.meta_path.insert(0, unseen)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(unseen)
    sys.meta_path.insert(0, _Announced())
