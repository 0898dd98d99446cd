"""Control objects: small objects on any store, whole or not there, each with a checksum.

`sealed` is what they contain, `local` and `remote` are the two kinds of stores; `storage.objects` chooses.
"""
