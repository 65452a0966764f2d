"""Plans: the calls that a run would make."""
