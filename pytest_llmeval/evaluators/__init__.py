"""General evaluators, one module or package each; they know neither pytest nor suite files."""
