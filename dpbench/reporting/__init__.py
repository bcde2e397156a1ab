"""How results are shown: tables, charts and the summary of a run."""
