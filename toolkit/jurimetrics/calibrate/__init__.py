"""Judges held against people: results and labels in, estimates out."""
