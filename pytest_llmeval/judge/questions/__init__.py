"""What a judge is asked: modes and their prompts, rubrics, rules, and how replies are read."""

__all__ = ()
