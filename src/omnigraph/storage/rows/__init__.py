"""How rows of a table are found: filters, indexes of vectors, the pieces that hold the rows, and their row ids."""
