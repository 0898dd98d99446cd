"""How commands import Arrow: without pandas, which they do not use."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec


class _WithoutPandas:
    """A finder of modules that says that pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("commands do without pandas", name=name)
        return None


def leave_out_pandas() -> None:
    """Let Arrow do its first conversion, at which it would import pandas if that is installed, without it.

    Arrow imports pandas to recognise its values in lists, which takes longer than a small query. Only that is
    lost, and only in the process of a command: the library leaves Arrow as it is, and others may import pandas.
    """
    if "pyarrow" in sys.modules or "pandas" in sys.modules:
        return
    sys.meta_path.insert(0, _WithoutPandas)
    try:
        import pyarrow as pa

        pa.array([0])
    finally:
        sys.meta_path.remove(_WithoutPandas)
