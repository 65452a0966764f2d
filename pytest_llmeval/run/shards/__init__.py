"""Shards: parts of a run on several machines, their files, and merging them."""
