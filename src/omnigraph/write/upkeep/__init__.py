"""What a writer does for its tables: folds small files, indexes new ones, removes what it staged in vain."""
