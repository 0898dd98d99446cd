"""Lowering: a checked syntax tree becomes the intermediate representation.

Read `reads` and `mutations`, then `expressions`; `dependencies` puts the parts of a block in order, `renaming`
keeps equal names of different blocks apart.
"""
