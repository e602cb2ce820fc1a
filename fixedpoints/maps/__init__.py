"""Maps beyond their fixed points: cycles and multipliers, flips, orbit diagrams, Lyapunov exponents."""
