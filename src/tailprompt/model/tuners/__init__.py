"""Tuners: what is trained besides the head."""
