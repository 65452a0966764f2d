"""The HTML report: one file that opens from disk, offline, with every case in it."""
