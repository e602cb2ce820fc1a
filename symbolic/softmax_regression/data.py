"""The data of softmax regression: letters or exact numbers for A and b, checked, and where the target lies."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from symbolic.errors import UndecidedError
from symbolic.zero import exact, is_zero

__all__ = ["column", "interpolating_point", "letters", "logarithmic_basis", "matrix", "symbols_of", "where"]


#: How far the sum of a target of rounded fractions, such as 1/3, may be from 1.
_ROUNDING = sp.Rational(1, 10**12)


def letters(name: str, *shape: int) -> sp.ImmutableMatrix:
    """A column or a matrix of real letters, name_<i> or name_<i>_<j>, numbered from 1.

    Raises:
        ValueError: a size is not a positive integer.
    """
    for size in shape:
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"The sizes of `{name}` must be positive integers; got {shape}.")
    rows, columns = shape if len(shape) == 2 else (*shape, 1)
    places = "_{0}_{1}" if len(shape) == 2 else "_{0}"
    return sp.ImmutableMatrix(rows, columns, lambda i, j: sp.Symbol(name + places.format(i + 1, j + 1)))


def matrix(name: str, entries: Sequence | sp.MatrixBase) -> sp.ImmutableMatrix:
    """A matrix with at least one row and column and finite real entries; a float is the rational that it is.

    Raises:
        TypeError: this is no list, or an entry is no number or expression.
        ValueError: rows differ in length, there is nothing, or an entry is not finite.
    """
    if isinstance(entries, sp.MatrixBase):
        rows = entries.tolist()
    else:
        rows = [list(row) if hasattr(row, "__iter__") else [row] for row in _listed(name, entries)]
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"`{name}` must have rows of one length, at least one row and one column; "
            f"got {len(rows)} rows of lengths {sorted(lengths)}."
        )
    return sp.ImmutableMatrix([[_entry(name, value) for value in row] for row in rows])


def column(name: str, entries: Sequence, size: int, what: str) -> tuple[sp.Expr, ...]:
    """`size` finite real entries.

    Raises:
        TypeError: this is no list, or an entry is no number or expression.
        ValueError: there are more or fewer, or one is not finite.
    """
    values = tuple(_entry(name, value) for value in _listed(name, entries))
    if len(values) != size:
        raise ValueError(
            f"`{name}` must have as many entries as there are {what}, {size}; got {len(values)}."
        )
    return values


def symbols_of(entries: Sequence[sp.Expr]) -> tuple[sp.Symbol, ...]:
    """The symbols in the order in which entries mention them, by name within one entry."""
    found = [s for entry in entries for s in sorted(entry.free_symbols, key=lambda s: s.name)]
    return tuple(dict.fromkeys(found))


def where(target: Sequence[sp.Expr], name: str = "b") -> str:
    """Where a target lies, in words: "b inside the simplex", on its boundary, outside and why, or "b symbolic"."""
    if any(value.free_symbols for value in target):
        return f"{name} symbolic"
    total, negative = sp.Add(*target), [i for i, value in enumerate(target, 1) if value.is_negative]
    if not is_zero(gap := total - 1):
        if abs(gap) < _ROUNDING and not negative:
            short = f"1 {'+' if gap > 0 else '-'} {float(abs(gap)):.2g}"
            return (
                f"{name} outside the simplex by rounding: its entries sum to {short}; give them as fractions"
            )
        return f"{name} outside the simplex: its entries sum to {total}"
    if negative:
        return f"{name} outside the simplex: entries {negative} are negative"
    zeros = [i for i, value in enumerate(target, 1) if value.is_zero]
    if zeros:
        return f"{name} on the boundary of the simplex: entries {zeros} are zero, so that f = b at infinity at most"
    return f"{name} inside the simplex"


def logarithmic_basis(blocks: Sequence[sp.MatrixBase]) -> sp.Matrix:
    """The matrix of the equations  r_p 1 + A_p x = log b_p  in r and then x, all blocks below each other."""
    shifts = sp.diag(*(sp.ones(block.rows, 1) for block in blocks))
    return shifts.row_join(sp.Matrix.vstack(*map(sp.Matrix, blocks)))


def interpolating_point(
    blocks: Sequence[sp.MatrixBase], targets: Sequence[Sequence[sp.Expr]]
) -> list[sp.Expr]:
    """x with  softmax(A_p x) = b_p  for every p, weights that the equations leave free (all flat ones) being zero.

    Args:
        blocks: A_p, rational or symbolic, in the same weights.
        targets: b_p.
    Raises:
        ValueError: a b_p does not sum to 1, an entry is not positive, or the equations have no solution.
        UndecidedError: whether they have one could not be decided.
    """
    basis, target = logarithmic_basis(blocks), [value for group in targets for value in group]
    sums = [sp.Add(*group) for group in targets]
    if any(is_zero(total - 1) is not True for total in sums):
        raise ValueError(f"f = b is impossible: f sums to 1, the target to {sums}.")
    if any(value.is_nonpositive for value in target):
        bad = [value for value in target if value.is_nonpositive]
        raise ValueError(
            f"f = b is impossible at finite weights: f > 0, but the target has the entries {bad}."
        )
    logarithms = sp.Matrix([sp.expand_log(sp.log(value), factor=True) for value in target])
    for kernel in basis.T.nullspace():
        gap = sp.expand((kernel.T * logarithms)[0])
        if is_zero(gap) is None:
            raise UndecidedError(
                f"Could not decide whether log b lies in range(A) + span(1): {gap} = 0?", gap
            )
        if gap != 0 and not is_zero(gap):
            raise ValueError(
                f"f = b is impossible: log b is not in range(A) + span(1), since {tuple(kernel)} is orthogonal "
                f"to that space and its product with log b is {gap}."
            )
    rows, columns = list(basis.T.rref()[1]), list(basis.rref()[1])
    solution = basis.extract(rows, columns).LUsolve(logarithms.extract(rows, [0]))
    point = dict(zip(columns, (sp.expand(value) for value in solution), strict=True))
    return [point.get(j, sp.S.Zero) for j in range(len(blocks), basis.cols)]


def _listed(name: str, entries: object) -> list:
    try:
        return list(entries)  # type: ignore
    except TypeError:
        raise TypeError(f"`{name}` must be a list of entries; got {entries!r}.") from None


def _entry(name: str, value: object) -> sp.Expr:
    try:
        entry = exact(sp.sympify(value, strict=True))
    except sp.SympifyError:
        raise TypeError(f"`{name}` must hold numbers or SymPy expressions; got {value!r}.") from None
    if not isinstance(entry, sp.Expr) or entry.has(sp.oo, -sp.oo, sp.zoo, sp.nan) or entry.is_real is False:
        raise ValueError(f"`{name}` must hold finite real entries; got {value!r}.")
    return entry
