"""Comparison of two runs: pairs, differences, tests."""
