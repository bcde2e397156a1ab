"""Whether an implementation is right, on small cases with known answers and on a user's own model."""
