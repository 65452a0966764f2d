"""Reports: terminal, JSON, Markdown. All of them read the same `RunReport`."""
