"""Evaluators that use a judge, and what people say of the same answers."""
