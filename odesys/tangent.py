"""Jacobians by forward differentiation of straight-line code: the chain rule on common subexpressions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import sympy as sp
from sympy.logic.boolalg import Boolean

__all__ = ["jacobian_program"]

_Program = list[tuple[sp.Symbol, sp.Expr]]


def jacobian_program(
    functions: Sequence[sp.Expr], state: Sequence[sp.Symbol]
) -> tuple[_Program, list[sp.Expr]]:
    """Assignments and the entries d f_i / d x_j in terms of them, row by row.

    Differentiating subexpressions, each once, costs about n times the work of the functions themselves;
    differentiating n^2 written-out entries and looking for what they share costs many times more.
    """
    assignments, results = sp.cse(list(functions), symbols=sp.numbered_symbols("s_", real=True), list=False)
    program: _Program = []
    gradients: dict[sp.Symbol, dict[int, sp.Expr]] = {x: {j: sp.S.One} for j, x in enumerate(state)}

    def gradient(expression: sp.Expr) -> dict[int, sp.Expr]:
        total = defaultdict(lambda: sp.S.Zero)
        for symbol in sorted(expression.free_symbols & gradients.keys(), key=lambda s: s.name):
            factor = _named(_partial(expression, symbol), program)
            for j, inner in gradients[symbol].items():
                total[j] += factor * inner
        return {j: entry for j, entry in total.items() if entry != 0}

    for symbol, expression in assignments:
        program.append((symbol, expression))
        if not isinstance(expression, Boolean):
            gradients[symbol] = {j: _named(entry, program) for j, entry in gradient(expression).items()}
    rows = [gradient(result) for result in results]
    return program, [row.get(j, sp.S.Zero) for row in rows for j in range(len(state))]


def _named(expression: sp.Expr, program: _Program) -> sp.Expr:
    if expression.is_Atom or -expression in (1, *expression.free_symbols):
        return expression
    symbol = sp.Symbol(f"d_{len(program)}", real=True)
    program.append((symbol, expression))
    return symbol


def _partial(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    # A function that jumps has the derivative zero on both sides, and none at the jump.
    steps = (sp.floor, sp.ceiling)
    return expression.diff(symbol).replace(
        lambda e: isinstance(e, sp.DiracDelta) or (isinstance(e, (sp.Derivative, sp.Subs)) and e.has(*steps)),
        lambda _: sp.S.Zero,
    )
