"""Commands that read and write data: query, mutate, load, export, embed and explain."""
