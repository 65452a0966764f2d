"""Similarity by sentence embeddings and BERTScore."""

__all__ = ()
