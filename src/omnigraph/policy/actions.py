"""What can be allowed: the actions, and what a rule about each may say."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Action(StrEnum):
    """What a policy allows or denies."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"
    ADMIN = "admin"
    GRAPH_LIST = "graph_list"


ON_BRANCH: Final = frozenset({Action.READ, Action.EXPORT, Action.CHANGE, Action.INVOKE_QUERY})
"""Actions on a branch, for `branch_scope`."""
TO_BRANCH: Final = frozenset(
    {Action.SCHEMA_APPLY, Action.BRANCH_CREATE, Action.BRANCH_DELETE, Action.BRANCH_MERGE}
)
"""Actions that make, change or remove a branch as a whole, for `target_branch_scope`."""
ON_TYPES: Final = frozenset({Action.READ, Action.EXPORT, Action.CHANGE, Action.BRANCH_MERGE})
"""Actions on the rows of types, for `types`."""
ON_SERVER: Final = frozenset({Action.GRAPH_LIST})
"""Actions that are about a server and none of its graphs."""
