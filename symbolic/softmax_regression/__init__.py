"""Softmax regression (Gao, Song, Xie, arXiv:2307.02419, and its predecessors): one target, or a matrix of them."""
