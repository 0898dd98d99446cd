"""The doctor: looks at a whole graph, changes nothing, and says what to do about each thing it finds.

Read `report` (findings) with `codes`, `examination` (what the checks look at) and `doctor` (the checks in their
order). The checks are in `control`, `activity`, `versions`, `files`, `indexes`, `lineage`, `orphans`, and `rules`
with `pieces`.
"""
