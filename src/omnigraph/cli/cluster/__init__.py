"""The verbs of `omnigraph cluster`: `commands` runs them, `printing` shows what they found."""
