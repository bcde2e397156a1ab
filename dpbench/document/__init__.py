"""Reports: what is said of results, in parts, and one exporter for each format. No torch here."""
