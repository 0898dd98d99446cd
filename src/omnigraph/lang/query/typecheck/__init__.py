"""Does a query fit the schema? Every rule has its code."""
