"""What the database is, who is protected, and the spec file that says so. Imports nothing above errors."""
