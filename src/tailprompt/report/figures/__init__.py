"""Kinds of figures: each takes (root, spec) and gives a matplotlib Figure."""
