"""Arithmetic shared by evaluators: tokens, overlaps, counts. Knows no cases, no pytest and no files of a suite."""
