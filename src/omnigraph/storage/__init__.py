"""What the substrate gives us: Lance tables, control objects and locks on any store.

Read `layout` (where everything lies), `tables` (the only module that moves a table; `staging` prepares), `objects` and
`locks`; the packages `files`, `control` and `locking` hold their parts.
"""
