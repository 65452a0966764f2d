"""The run of cases, from job to result, and its stages afterwards, without pytest."""
