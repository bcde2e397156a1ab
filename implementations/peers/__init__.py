"""Other libraries, run as themselves. Each is imported only when it is prepared; none is needed to list them."""
