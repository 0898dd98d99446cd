"""Storage: Lance tables, control objects and locks, on a disk, an object store or in memory.

Read `layout` (where everything is), `tables` (the only module that moves a table) with `stage/` (which prepares
its changes) and `rows/` (how rows are found), `objects` and `locks`; `files/`, `control/` and `locking/` hold
their parts.
"""

from omnigraph.storage.arrow import wait_for_pandas

wait_for_pandas()
