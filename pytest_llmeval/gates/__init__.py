"""Gates: limits, changes against a baseline or another system, their verdicts and the statistics they rest on."""
