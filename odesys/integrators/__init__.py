"""Stepping time: one contract (`contract.solve`), two thin backends (SciPy, diffrax) that return plain arrays."""
