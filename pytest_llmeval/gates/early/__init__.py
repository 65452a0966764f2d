"""Verdicts on gates before all cases have run, right whenever one looks."""
