"""BK with one of its three tricks taken away; without ghost norms it is fastgradclip_improved."""
