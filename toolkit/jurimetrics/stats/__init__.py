"""Statistics as functions of arrays and frames; nothing here knows of judges or tasks."""
