"""Runs: one method on one dataset, from a config to a folder with everything that came of it."""
