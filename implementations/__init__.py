"""One DP-SGD gradient algorithm per file, found by dpbench through entry points."""
