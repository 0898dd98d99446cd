"""Reading: how a checked query becomes rows of one snapshot."""
