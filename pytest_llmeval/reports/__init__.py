"""What a run says of itself: on the terminal, as JSON, as Markdown. All read the same `RunReport`."""
