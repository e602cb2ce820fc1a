"""What a rule looks like near one of its fixed points.

Reading order: `balls` (numbers that know how exact they are), `functions` and `jets` (Taylor polynomials in
them), `local` and `refinement` (the rule seen from a point, to all digits), `spectrum` (eigenvalues with
bounds); then what decides where those do not: `one_state`, `centre_manifold`, `conserved`, `gradient`,
`continuum`, `nilpotent`; and `conditions`, for rules whose parameters stay symbols.
"""
