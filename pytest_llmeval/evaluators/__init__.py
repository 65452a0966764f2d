"""Evaluation systems, one file or folder each; they know neither pytest nor files of a suite."""
