"""What is derived from tables and kept beside them, so that a process which starts does not derive it again.

Read `container` (arrays as bytes), `versions` (the version something was made from), then `topology` and
`postings`, and `shelf` (where they lie).
"""
