"""A schema proposed from data: `samples` reads the first rows of files, `types` tells the types of their columns,
`relations` finds keys and what refers to them, and `proposal` writes a schema and a mapping of it all."""
