"""How bodies come in and answers go out: limits, packing, streams and events."""
