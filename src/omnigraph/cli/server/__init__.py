"""The verbs about servers."""
