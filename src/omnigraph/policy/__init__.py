"""Who may do what with a graph. Read `actions`, then `rules` (the file), `cedar` (what it becomes), `policy`
(decisions) and `guard` (how a graph asks for them); `cases` are the tests that a policy can have."""
