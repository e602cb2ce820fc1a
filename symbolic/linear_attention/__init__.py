"""Linear attention trained on in-context linear regression (Zhang et al., arXiv:2501.16265).

Reading order: `task` (moments of the data, and the loss as a function of M), `merged` and `separate` (the two
networks), `fixed_points` (where separate attention stops), `escape` (how one of its heads leaves zero).
"""
