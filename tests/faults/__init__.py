"""Everything that can go wrong around a run, made to go wrong: real processes, real signals, real files.

One file for each fault, with its name ``FAULT`` and ``strike(place, draw)``, which lets it happen once, at a moment or
place that ``draw`` chooses, and says what came of it. ``make faults`` does each many times.
"""
