"""Questions to judges: modes, prompts, rubrics, rules, and the reading of replies."""
