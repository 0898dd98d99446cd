"""How a lock is held on a disk and on an object store.

`filelocks` and `leases` are the two ways, `patience` is how long a writer waits, `process` refuses forked ones.
"""
