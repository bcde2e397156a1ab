"""Figures of papers, reproduced: planned from suites, predicted for a card, measured here, set side by side."""
