"""Score language-model answers with panels of judges, and say how far each judge can be trusted."""
