"""Evaluator ``tools``: tool calls and their order compared with what is expected."""
