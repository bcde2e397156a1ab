"""TODO-describe."""
