"""Verbs about the person at the keyboard: tokens, profiles and aliases."""
