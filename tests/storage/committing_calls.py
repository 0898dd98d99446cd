"""Finds every use of a Lance call that moves a table, by reading source code.

Names that only Lance has are found on whatever they are used. Names that others have too (`update`, `delete`,
`commit`) count when they are used on something of Lance's: what was imported from it, annotated with its types,
opened through it, called as we call datasets, or assigned from any of these.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

ONLY_LANCE = frozenset(
    {
        "MergeInsertBuilder",
        "add_bases",
        "alter_columns",
        "cleanup_old_versions",
        "commit_batch",
        "commit_existing_index_segments",
        "compact_files",
        "create_scalar_index",
        "deep_clone",
        "delete_config_keys",
        "drop_index",
        "initialize_mem_wal",
        "mem_wal_writer",
        "merge_insert",
        "migrate_manifest_paths_v2",
        "optimize_indices",
        "replace_field_metadata",
        "replace_schema",
        "replace_schema_metadata",
        "shallow_clone",
        "truncate_table",
        "update_config",
        "update_field_metadata",
        "update_schema_metadata",
        "write_dataset",
    }
)
"""Names that mean a committing call wherever they stand."""

ON_LANCE = frozenset(
    {
        "add_columns",
        "commit",
        "create_branch",
        "create_index",
        "delete",
        "drop",
        "drop_columns",
        "execute",
        "insert",
        "merge",
        "optimize",
        "restore",
        "tags",
        "update",
        "update_metadata",
    }
)
"""Names that mean a committing call on something of Lance's."""

STAGING = frozenset(
    {"Compaction", "FragmentMetadata", "LanceOperation", "Transaction", "commit", "optimize", "write_fragments"}
)
"""Names of Lance that only `omnigraph.storage` may import: what is staged is staged there."""

TYPES = frozenset({"Compaction", "LanceDataset", "LanceFragment"})
CUSTOMARY = frozenset({"dataset", "ds", "fragment", "handle", "trunk"})
"""What we call datasets and their fragments."""

OPENING = TYPES | {"checkout_latest", "checkout_version", "dataset", "get_fragment", "get_fragments"}
"""Calls that return a dataset or its fragments."""


def committing_calls(source: str, *, in_storage: bool) -> list[str]:
    """What a module must not do, as `line: what`."""
    nodes = list(ast.walk(ast.parse(source)))
    found = {*_imports(nodes, in_storage), *_uses(nodes, _Things(nodes))}
    return [f"{line}: {what}" for line, what in sorted(found)]


def _imports(nodes: list[ast.AST], in_storage: bool) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and _is_lance(node.module):
            parts = {alias.name for alias in node.names} | set((node.module or "").split(".")[1:])
            barred = ONLY_LANCE | {"*"} | (frozenset() if in_storage else STAGING)
            yield from ((node.lineno, f"imports {name}") for name in parts & barred)
        elif isinstance(node, ast.Import) and not in_storage:
            for alias in node.names:
                if _is_lance(alias.name) and set(alias.name.split(".")) & STAGING:
                    yield node.lineno, f"imports {alias.name}"
        elif isinstance(node, ast.Call) and _last_name(node.func) in ("import_module", "__import__"):
            named = _text(node.args[0]) if node.args else ""
            if _is_lance(named) and not in_storage:
                yield node.lineno, f"imports {named} by name"


def _uses(nodes: list[ast.AST], things: _Things) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Attribute):
            if node.attr in ONLY_LANCE or (node.attr in ON_LANCE and things.includes(node.value)):
                yield node.lineno, node.attr
            elif node.attr in ("create", "delete") and things.has_branches(node.value):
                yield node.lineno, f"branches.{node.attr}"
        elif isinstance(node, ast.Call) and _last_name(node.func) == "getattr" and len(node.args) > 1:
            name = _text(node.args[1])
            if name in ONLY_LANCE or (name in ON_LANCE and things.includes(node.args[0])):
                yield node.lineno, name


class _Things:
    """The names in a module that stand for something of Lance's, and the functions that return such."""

    def __init__(self, nodes: list[ast.AST]) -> None:
        self._names = set(CUSTOMARY)
        self._opening = set(OPENING)
        known = 0
        while known != len(self._names):
            known = len(self._names)
            for node in nodes:
                self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        match node:
            case ast.ImportFrom(module=module, names=imported) if _is_lance(module):
                self._names |= {a.asname or a.name for a in imported if a.name in TYPES or a.name == "optimize"}
            case ast.FunctionDef(name=name, returns=ast.expr() as returns) if _mentions_types(returns):
                self._opening.add(name)
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if _mentions_types(annotation):
                self._names.add(name)
            case ast.AnnAssign(target=target, annotation=annotation) if _mentions_types(annotation):
                self._bind(target)
            case ast.Assign(targets=targets, value=value) if self.includes(value):
                for target in targets:
                    self._bind(target)
            case ast.NamedExpr(target=target, value=value) if self.includes(value):
                self._bind(target)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
                if self.includes(value):
                    self._bind(target)
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target) if self.includes(value):
                self._bind(target)

    def _bind(self, target: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for element in target.elts:
                self._bind(element)
        elif name := _last_name(target):
            self._names.add(name)

    def includes(self, node: ast.AST) -> bool:
        """Does this expression stand for a dataset, a fragment or a class of Lance's?"""
        match node:
            case ast.Name() | ast.Attribute():
                name = _last_name(node)
                return name in TYPES or name in self._names or name.strip("_") in self._names
            case ast.Call(func=ast.Attribute(attr="open", value=opened)):
                return _last_name(opened) == "self" or "tables" in _last_name(opened)
            case ast.Call(func=function):
                return _last_name(function) in self._opening - {"open"}
        return any(self.includes(part) for part in _same_thing(node))

    def has_branches(self, node: ast.AST) -> bool:
        """Is this expression the branches of something of Lance's?"""
        return isinstance(node, ast.Attribute) and node.attr == "branches" and self.includes(node.value)


def _same_thing(node: ast.AST) -> list[ast.expr]:
    """The parts of an expression that may be its value."""
    match node:
        case ast.IfExp():
            return [node.body, node.orelse]
        case ast.BoolOp():
            return node.values
        case ast.Tuple() | ast.List():
            return node.elts
        case ast.NamedExpr() | ast.Subscript() | ast.Await() | ast.Starred():
            return [node.value]
    return []


def _mentions_types(annotation: ast.expr) -> bool:
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    return any(_last_name(part) in TYPES for part in ast.walk(annotation))


def _is_lance(module: str | None) -> bool:
    return module is not None and module.split(".")[0] == "lance"


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
