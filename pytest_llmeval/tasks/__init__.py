"""Evaluation tasks, one package each; they register like the plugins of users."""
