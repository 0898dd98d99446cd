"""How a lock is held: by the operating system on a disk, by a lease on an object store.

Read `filelocks` and `leases`, the two ways; `patience` is how long a writer waits, `process` refuses forked
children.
"""
