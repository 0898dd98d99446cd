"""Groups of rows: `grouping` finds them, `aggregates` and `listing` compute a value of each."""
