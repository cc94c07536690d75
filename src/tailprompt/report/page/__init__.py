"""One page that says which method to take: evidence from runs, pictures, words."""
