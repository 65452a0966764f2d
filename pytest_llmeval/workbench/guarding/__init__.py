"""Comparison of the evaluations of two states of a repository: what the later one asks less of."""
