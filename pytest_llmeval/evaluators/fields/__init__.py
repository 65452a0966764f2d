"""Evaluator ``fields``: structured output compared field by field."""
