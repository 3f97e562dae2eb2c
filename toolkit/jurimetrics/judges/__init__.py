"""Judges, panels, reply reading, prices: whoever answers tasks."""
