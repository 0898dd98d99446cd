"""Control objects: small objects that are written whole or not at all, each with a checksum.

Read `sealed` (what they contain), then `local` and `remote`, the two kinds of stores; `storage.objects` chooses
between them.
"""
