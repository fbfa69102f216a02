"""What runs, in which order and in which memory."""
