"""What the substrate gives us: control objects, Lance tables, locks, and where each of them lives."""
