"""What was released: the model, its file, and the checks that tie it to its receipt."""
