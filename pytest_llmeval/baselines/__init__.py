"""Score snapshots: approved scores of a suite, and comparison with them."""
