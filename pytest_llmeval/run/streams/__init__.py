"""Streams: results of parts that add up, of any number of cases, on any executor."""
