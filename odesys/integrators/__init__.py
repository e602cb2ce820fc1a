"""Stepping time: one contract (`contract.solve`), two thin backends (SciPy, diffrax) with plain arrays."""
