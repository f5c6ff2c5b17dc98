"""What an evaluation found, and what a model holds, as one page to look at."""
