"""Arithmetic shared by evaluators: tokens, overlaps, counts. Knows no cases, no pytest, no suite files."""
