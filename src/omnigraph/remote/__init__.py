"""The same graph over HTTP."""
