"""The HTML report: one file with every case, which opens from disk without network."""
