"""Emotion-cause pairs of SemEval-2024 Task 3 as text: how they are spelled, where spans lie, what is wrong."""
