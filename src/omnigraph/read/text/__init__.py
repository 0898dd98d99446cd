"""Text search in memory: analysis as Lance does it, postings, BM25, and search that forgives typing mistakes."""
