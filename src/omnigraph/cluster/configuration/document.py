"""A YAML document whose values know their lines. Keys that are given twice are told with both lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from omnigraph.cluster.codes import problem
from omnigraph.errors import ClusterProblem

FILE: Final = "cluster.yaml"
_MOST_VALUES: Final = 100_000
"""A document that refers to itself, or to its own parts again and again, has no end."""


@dataclass(frozen=True, slots=True)
class Value:
    """A text, a number, a list or a mapping of values, and the line it begins in."""

    found: Any
    line: int

    @property
    def plain(self) -> Any:
        """The value without lines."""
        if isinstance(self.found, dict):
            return {key: each.plain for key, each in self.found.items()}
        return [each.plain for each in self.found] if isinstance(self.found, list) else self.found


def at_line(line: int, message: str) -> str:
    """A message with the line it is about."""
    return f"line {line}: {message}"


def parse_document(text: str) -> tuple[Value | None, list[ClusterProblem]]:
    """The document of cluster.yaml, and its keys that are given twice; None if it is no YAML."""
    import yaml

    found: list[ClusterProblem] = []
    left = _MOST_VALUES
    try:
        loader: Any = yaml.SafeLoader(text)
        root = loader.get_single_node()
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        return None, [problem("cluster_yaml_invalid", FILE, f"it is not YAML: {' '.join(str(error).split())}")]

    def value(node: Any, path: str) -> Value:
        nonlocal left
        left -= 1
        if left < 0:
            raise RecursionError
        line = node.start_mark.line + 1
        if isinstance(node, yaml.SequenceNode):
            return Value([value(each, f"{path}[{index}]") for index, each in enumerate(node.value)], line)
        if isinstance(node, yaml.MappingNode):
            return Value(mapping(node, path), line)
        return Value(loader.construct_object(node), line)

    def mapping(node: Any, path: str) -> dict[Any, Value]:
        made: dict[Any, Value] = {}
        for key_node, each in node.value:
            key = loader.construct_object(key_node) if isinstance(key_node, yaml.ScalarNode) else "[a list]"
            where, line = f"{path}.{key}".lstrip("."), key_node.start_mark.line + 1
            if key in made:
                found.append(problem("duplicate_key", where, at_line(line, f"'{key}' is given twice")))
            made[key] = Value(value(each, where).found, line)
        return made

    try:
        return (Value({}, 1) if root is None else value(root, "")), found
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        said = "it has no end" if isinstance(error, RecursionError) else f"it is not YAML: {error}"
        return None, [problem("cluster_yaml_invalid", FILE, said)]
