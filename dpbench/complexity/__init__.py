"""What a step costs, found without running it: shapes go through the real code, numbers do not."""
