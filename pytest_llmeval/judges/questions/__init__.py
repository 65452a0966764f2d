"""Questions to judges."""
