"""Mutants: answers that are wrong by construction."""
