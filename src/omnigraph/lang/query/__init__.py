"""The query language: `.gq` text becomes a checked plan, the intermediate representation that engines run.

Read `compile` (everything put together), then in order `grammar/` (text to `syntax`), `typecheck/`, `lowering/`
and `ir`; `explain`, `format` and `lint` show, rewrite and judge queries.
"""
