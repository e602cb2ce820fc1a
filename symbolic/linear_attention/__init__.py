"""Linear attention trained on in-context linear regression (Zhang et al., arXiv:2501.16265)."""
