"""Variants side by side: which one the judges score higher, by how much, and how sure that is."""
