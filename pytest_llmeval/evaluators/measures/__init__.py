"""Arithmetic shared by evaluators. It knows no cases, pytest or suite files."""
