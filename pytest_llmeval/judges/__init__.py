"""Judges, models that grade answers: questions, clients, stored verdicts, limits."""
