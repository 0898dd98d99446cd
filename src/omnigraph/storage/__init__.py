"""What the substrate gives us: Lance tables, control objects and locks on any store.

Read `layout` (where all lies), `tables` (the only one that moves a table; `staging` prepares), `objects` and
`locks`; the packages `files`, `control` and `locking` hold their parts.
"""
