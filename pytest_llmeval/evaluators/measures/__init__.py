"""Arithmetic shared by evaluators: tokens, overlaps, counts. It knows no cases, pytest or suite files."""
