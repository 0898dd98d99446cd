"""YAML of an operator: a document in which no key is given twice, because one of the two would be lost."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def read_yaml(text: str) -> object:
    """The document of a text; ValueError says why there is none."""
    import yaml

    class Loader(yaml.SafeLoader):
        """YAML in which a key that is given twice is a mistake."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            seen: set[Hashable] = set()
            for name, _ in node.value:
                key = self.construct_object(name, deep=True)
                if key in seen:
                    raise yaml.constructor.ConstructorError(None, None, f"'{key}' is given twice")
                seen.add(key)
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, Loader)  # noqa: S506  a SafeLoader
    except (yaml.YAMLError, TypeError, RecursionError) as error:
        raise ValueError(f"it is not YAML: {' '.join(str(error).split())}") from None
