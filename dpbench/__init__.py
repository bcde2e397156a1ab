"""dpbench: benchmarks and complexity analysis of DP-SGD gradient implementations."""
