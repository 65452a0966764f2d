"""From observations to metrics and intervals."""
