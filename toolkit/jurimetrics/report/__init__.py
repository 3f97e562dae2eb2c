"""Results as one HTML file for whoever decides: what was found, how far it can be trusted, and what it rests on."""
