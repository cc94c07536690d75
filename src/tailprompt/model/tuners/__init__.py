"""What is trained besides the head."""
