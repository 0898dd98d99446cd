"""Checked syntax to intermediate representation."""
