"""Checks: assertions on one answer."""
