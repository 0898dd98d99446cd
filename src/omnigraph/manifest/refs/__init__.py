"""Names for states: branches and tags, each a small object.

Read `names` (what a name may be), `objects` (what a branch's object holds), `writes` (creating and retiring
objects), then `branches` and `tags`.
"""
