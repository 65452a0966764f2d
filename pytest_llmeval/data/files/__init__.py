"""Reading text, YAML, JSON and CSV, with the position of each value."""
