"""The process that uses graphs.

Lance and the clients of object stores keep threads, which `fork` does not copy: whatever a forked child asks of
them hangs or ends the child, even on a graph that the child opens itself. So a child is refused at once, unless
its parent had not used a graph yet.
"""

from __future__ import annotations

import os

from omnigraph.errors import ForkedProcess

_user: int | None = None


def use_here(address: str) -> int:
    """This process uses a graph from now on; its id. ForkedProcess if a process it was forked from did so."""
    global _user
    here = os.getpid()
    if _user is None:
        _user = here
    require_process(_user, address)
    return here


def require_process(owner: int, address: str) -> None:
    """Raise ForkedProcess unless this process is the one that opened the graph."""
    here = os.getpid()
    if here != owner:
        raise ForkedProcess(address, owner, here)
