"""Text search in memory, with the analysis of Lance's inverted index.

Read `analysis` (texts become terms), `postings` (the index, over a `vocabulary`), then `bm25` (scores) and
`spelling` (fuzzy search).
"""
