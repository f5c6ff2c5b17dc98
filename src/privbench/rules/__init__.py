"""What holds in every row: expressions over its columns, and how they are worked out."""
