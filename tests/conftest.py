"""Settings of all tests."""

from hypothesis import settings

# Examples share two cores with other processes: a slow one is no failure, and the same ones run everywhere.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")
