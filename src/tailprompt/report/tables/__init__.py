"""Kinds of tables: (root, spec) in; every number, a sheet for LaTeX and one for Markdown out."""
