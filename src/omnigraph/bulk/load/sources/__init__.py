"""Where the records of a load come from: files found by paths, directories and globs, and cut into slices."""
