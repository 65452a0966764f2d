"""Evaluators that use a judge, and one that compares a judge with people."""
