"""Real solutions of polynomial systems, all of them, with proof: points, components, and how often each counts.

Reading order: `numbers` (real algebraic numbers), `polynomials` (one ring for all), `projections` (eliminants, by
resultants or from a quotient algebra), `matching` (the points that they hide), `points`, `ideals` (Groebner bases),
`curves` (the real part of a plane curve), `solver` (branches and blocks), `variety` (the answer) and `audit` (the
counts that it must survive), all on FLINT's integers; then `form` (fields that become polynomial by substitution)
and `states` (the way back); `parametric` and `expressions` for coefficients that hold parameters.
"""
