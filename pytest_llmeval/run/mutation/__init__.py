"""Mutants of answers: whether a suite would notice answers that are wrong by construction."""
