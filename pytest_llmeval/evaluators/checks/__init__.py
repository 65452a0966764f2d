"""Checks: assertions on one answer, written as data."""
