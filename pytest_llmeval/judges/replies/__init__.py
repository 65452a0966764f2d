"""Stores of replies, the verdicts obtained so far; `pytest_llmeval.judges._options.StoreKind.KNOWN` lists them."""
