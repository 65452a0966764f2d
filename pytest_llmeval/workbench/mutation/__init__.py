"""Mutants: answers that are wrong by construction, and whether suites notice them."""
