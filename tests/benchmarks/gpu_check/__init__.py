"""What only a CUDA device can show: one prepared run of at most five minutes. Run: ``make gpu-check``."""
