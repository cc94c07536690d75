"""Rows of a data set become what a backbone reads."""
