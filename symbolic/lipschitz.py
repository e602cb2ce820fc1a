"""How far the pieces of softmax regression can move: the papers' Lipschitz constants beside the best known here.

The papers assume |A| <= R and |x| <= R, so that |A x| <= R^2, |b| <= 1 and alpha >= beta, and multiply the bounds
of u, alpha and 1/alpha up to  M = n^{3/2} exp(10 R^2)  for f. But S(f) = diag(f) - f f^T has |S| <= 1/2, since
v^T S v = Var_f(v) <= (max v - min v)^2/4 <= |v|^2/2: f is |A|/2-Lipschitz on the whole space, whatever n is, and
the gradient is (9/16) |A|^2-Lipschitz there for b in the simplex. Only the rescaled loss, a quadratic form of u,
really grows exponentially.

A matrix problem is its rows' vector problems with A = A1 kron A2 and |x| = |X|_F, so that its constants are those of
one row, with no factor for the number of rows. (The gradient's moves with A1 or A2 would need one; they are left out.)

    print(lipschitz.table(n=4, R=2, beta=0.3, b_norm=1))        # or, in a notebook, the table itself

Source: Li et al., arXiv:2304.13276 (M, normalized); Gao, Song, Yin, arXiv:2305.00660 (rescaled); Gao, Song, Xie,
arXiv:2307.02419 (both, matrix; M = exp(O(R^2 + log n))). Of the papers' steps only M was read; the chains of steps are
in the papers' manner, recalled or put together here, and say so. The best constants are derived here.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import combinations

import sympy as sp

from symbolic.softmax_regression.curvature import kappa, kappa3
from symbolic.softmax_regression.data import matrix
from symbolic.zero import exact

__all__ = [
    "Bound",
    "Cited",
    "Known",
    "R",
    "Table",
    "b_norm",
    "beta",
    "kappa",
    "kappa3",
    "n",
    "of_softmax",
    "table",
]

#: The number of targets; the bound of |A| and |x|; the floor of alpha; |b|.
n = sp.Symbol("n", positive=True, integer=True)
R, beta = sp.symbols("R beta", positive=True)
b_norm = sp.Symbol("b", nonnegative=True)
_SYMBOLS = {"n": n, "R": R, "beta": beta, "b_norm": b_norm}


class Cited(Enum):
    """Where a published constant comes from."""

    READ = "read in the paper"
    CHAIN = (
        "a chain of steps in the papers' manner, recalled or put together here: not to be quoted as theirs"
    )
    ABSENT = "no constant is published"


class Known(Enum):
    """How well the best constant is known."""

    SHARP = "proven, best possible"
    PAIR = "proven; attained for n = 2, approached for n > 2 as R grows"
    TWO_ROWS = "proven and attained for n = 2; for n > 2 a numerical optimum, no theorem"
    LOOSE = "proven, can be improved"
    NOTHING = "proven: no constant exists"


@dataclass(frozen=True)
class Bound:
    """|quantity moves| <= best * |what moves it|, with the best constant known here and a paper's beside it.

    Args:
        quantity: "u", "alpha", "1/alpha", "f", "c", "gradient", "Hessian", "rescaled residual", "rescaled gradient",
            "target" or "rescaled target" (b~ of a move of weights, b^ of a move of data, B~ and B^ of a matrix).
        moved: "x" or "A"; of a matrix problem "X", "A1" or "A2", with |A1| |A2| in the place of |A|.
        target: where b, or each row of B, lies: "any" (the bound is the same), "simplex", "unit ball", or "ball",
            whose radius is the table's |b|.
        note: what else tells the bound from its neighbours, such as "every n".
        published: a paper's constant, or a chain in its manner, or None; `cited` says which. source: where.
        best: oo where no finite constant exists; `known` says how well it is known.
    """

    quantity: str
    moved: str
    target: str
    note: str
    published: sp.Expr | None
    cited: Cited
    source: str
    best: sp.Expr
    known: Known

    @property
    def of_matrix(self) -> bool:
        """Whether it speaks of a matrix problem."""
        return self.moved in ("X", "A1", "A2")

    @property
    def name(self) -> str:
        """A name of its own in the table, for example "gradient, x-move, b in the simplex"."""
        simplex = "rows of B in the simplex" if self.of_matrix else "b in the simplex"
        place = {"simplex": simplex, "unit ball": "|b| <= 1"}.get(self.target)
        moving = self.quantity.replace("target", self._letter)
        matrix = "matrix " if self.of_matrix and "target" not in self.quantity else ""
        return ", ".join(
            part for part in (f"{matrix}{moving}", f"{self.moved}-move", place, self.note) if part
        )

    @property
    def ratio(self) -> str:
        """What is bounded, for example "|f(x) - f(y)| / |x - y|"."""
        first, second, move = _MOVES[self.moved]
        of = _LETTERS.get(self.quantity, self.quantity)
        norm = "|_F" if self.of_matrix else "|"
        if "target" in self.quantity:
            return f"|{self._letter} - {self._letter[0]}{norm} / {move}"
        return f"|{of}({first}) - {of}({second}){norm} / {move}"

    @property
    def _letter(self) -> str:
        """Of the in-context target: b~ or B~ where weights move, b^ or B^ where data do."""
        return ("B" if self.of_matrix else "b") + ("~" if self.moved in ("x", "X") else "^")

    def __str__(self) -> str:
        return f"{self.ratio} <= {_shown(self.best)}"


#: Two points of a move, and its size.
_MOVES = {
    "x": ("x", "y", "|x - y|"),
    "A": ("A", "A'", "|A - A'|"),
    "X": ("X", "Y", "|X - Y|_F"),
    "A1": ("A1", "A1'", "(|A1 - A1'| |A2|)"),
    "A2": ("A2", "A2'", "(|A1| |A2 - A2'|)"),
}
_LETTERS = {"gradient": "grad L", "Hessian": "H", "rescaled residual": "r", "rescaled gradient": "grad Lr"}


@dataclass(frozen=True, repr=False)
class Table:
    """Bounds, row by row: iterate over it, index it by number or by name, print it, or show it in a notebook."""

    rows: tuple[Bound, ...]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: int | str) -> Bound:
        if isinstance(key, int):
            return self.rows[key]
        for bound in self.rows:
            if bound.name == key:
                return bound
        raise KeyError(f"The table has no row {key!r}; its rows are {[bound.name for bound in self.rows]}.")

    def __str__(self) -> str:
        lines = [_HEADINGS, *(_cells(bound, _shown) for bound in self.rows)]
        widths = [min(max(map(len, column)), _WIDEST) for column in zip(*lines, strict=True)]
        padded = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
        return "\n".join(padded)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells, tag):
            return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(line([html.escape(c) for c in _cells(bound, _latex)], "td") for bound in self.rows)
        return f"<table><thead>{line(_HEADINGS, 'th')}</thead><tbody>{body}</tbody></table>"


_HEADINGS = ("bound", "published", "best", "how well known")
#: To how many characters a column of text is padded; long expressions run over.
_WIDEST = 55


def _cells(bound: Bound, shown) -> tuple[str, ...]:
    published = "" if bound.published is None else shown(bound.published)
    chain = " (chain)" if bound.cited is Cited.CHAIN else ""
    return bound.name, published + chain, shown(bound.best), bound.known.value


def _shown(value: sp.Expr) -> str:
    """A number to four digits, of any size, or an expression."""
    return f"{sp.N(value, 4)}" if value.is_number else str(_readable(value))


def _latex(value: sp.Expr) -> str:
    return _shown(value) if value.is_number else f"${sp.latex(_readable(value))}$"


def _readable(value: sp.Expr) -> sp.Expr:
    """With floats again for the fractions of floats, and for a factor that only a polynomial defines."""
    factor, rest = value.as_independent(*value.free_symbols, as_Add=False)
    value = factor.n(4) * rest if factor.has(sp.CRootOf) else value
    return value.xreplace({q: q.n(4) for q in value.atoms(sp.Rational) if q.q > 10**6})


def table(
    *,
    n: int | sp.Expr = n,
    R: sp.Expr | float = R,
    beta: sp.Expr | float = beta,
    b_norm: sp.Expr | float = b_norm,
) -> Table:
    """Every building block's bound, as expressions in n, R, beta and |b|, or with values in their place.

    No bound depends on d. The usual floor is beta = exp(-R^2), and with it the best constants are below the published;
    alpha >= n exp(-R^2/sqrt(n)) holds too, and is attained. Floats are read as the fractions that they are, and shown
    as floats.

    Args:
        n: the number of targets (in a row). R: the bound of |A| and |x|, or of |A1| |A2| and |X|_F.
        beta: the floor of alpha. b_norm: |b|, or that of the longest row of B.
    Raises:
        ValueError: n is not a positive integer, R or beta not positive, or |b| negative.
    """
    given = zip(_SYMBOLS, (n, R, beta, b_norm), strict=True)
    values = {name: exact(sp.sympify(value)) for name, value in given}
    for name, value in values.items():
        if value.is_finite is False or not (value.is_nonnegative if name == "b_norm" else value.is_positive):
            kind = "non-negative" if name == "b_norm" else "positive"
            raise ValueError(f"`{name}` must be a {kind} number or symbol; got {value}.")
    if values["n"].is_integer is not True:
        raise ValueError(f"`n` must be an integer; got {values['n']}.")
    here = {_SYMBOLS[name]: value for name, value in values.items()}
    return Table(
        tuple(
            replace(
                bound,
                published=None if bound.published is None else bound.published.xreplace(here),
                best=bound.best.xreplace(here),
            )
            for bound in _bounds()
        )
    )


def of_softmax(A: Sequence | sp.MatrixBase) -> sp.Expr:
    """The best constant of s = A x -> f for one A with f free in the simplex:  (sqrt(2)/4) max_ij |a_i - a_j|.

    For unit w,  w^T S A v = Cov_f(w, A v) <= (range of w/2)(range of A v/2)  and the range of w is at most sqrt(2).
    Attained at f = (e_i + e_j)/2; at most |A|/2, and unchanged if all rows of A are shifted.

    Raises:
        TypeError, ValueError: A is no matrix of finite numbers or expressions.
    """
    rows = matrix("A", A)
    gaps = [(rows.row(i) - rows.row(j)).norm() for i, j in combinations(range(rows.rows), 2)]
    return sp.sqrt(2) / 4 * sp.Max(0, *gaps)


#: The published constant, and bounds on |s| <= R^2 that the rows share: of the entries of u, of |u| and of alpha.
#: sum_i exp(k s_i) = n + k sum_i s_i + sum_{j > 1} (k^j/j!) sum_i s_i^j, and sum_i |s_i|^j <= R^{2j} for j > 1.
_M = n ** sp.Rational(3, 2) * sp.exp(10 * R**2)
_ENTRY = sp.exp(R**2)
_NORM = sp.sqrt(sp.exp(2 * R**2) + n - 1 + 2 * (sp.sqrt(n) - 1) * R**2)
_SUM = sp.exp(R**2) + n - 1 + (sp.sqrt(n) - 1) * R**2
#: 1/alpha: by the floor that is given, and by the means of the s_i, alpha >= n exp(sum_i s_i/n).
_INVERSE = sp.Min(1 / beta, sp.exp(R**2 / sp.sqrt(n)) / n)
#: |(I - b 1^T) diag(u)| <= |diag(u)| + |b| |u|, and r = u - alpha b.
_SLOPE, _RESIDUAL = _ENTRY + b_norm * _NORM, _NORM + b_norm * _SUM

_READ = (Cited.READ, "Li et al., arXiv:2304.13276, in-context theorem")
_CHAIN = (Cited.CHAIN, "a chain of steps in the manner of the papers")
_ABSENT = (None, Cited.ABSENT, "arXiv:2307.02419: exp(O(R^2 + log n)), without constants")


#: The chains. |du| <= 2 sqrt(n) R exp(R^2) |dx|, if also |A dx|_oo < 1/100; |d alpha| <= sqrt(n) |du|;
#: |d(1/alpha)| <= |d alpha|/beta^2; |df| <= |du|/beta + |d(1/alpha)| |u|, |u| <= sqrt(n) exp(R^2).
_U = 2 * sp.sqrt(n) * R * sp.exp(R**2)
_ALPHA = sp.sqrt(n) * _U
_F = _U / beta + _ALPHA / beta**2 * sp.sqrt(n) * sp.exp(R**2)
#: |d(f c - <f, c> f)| <= 3 |df| |c| + 2 |dc| with |f| <= 1, |c| <= 1 + |b|, and |dr| <= |du| + |b| |d alpha|.
_G = (3 * (1 + b_norm) + 2) * _F
_R = _U + b_norm * _ALPHA
#: |d(u r - <b, r> u)| <= (1 + |b|) (|du| |r| + |u| |dr|) with |r| <= |u| + |b| alpha.
_LONG = sp.sqrt(n) * sp.exp(R**2)
_FAR = (1 + b_norm) * (_U * (1 + sp.sqrt(n) * b_norm) * _LONG + _LONG * _R)


@lru_cache(maxsize=1)
def _bounds() -> tuple[Bound, ...]:
    return (*_pieces("x"), *_pieces("A"), *_gradients(), *_rescaled(), *_targets(), *_matrices())


def _pieces(moved: str) -> tuple[Bound, ...]:
    """u, alpha, 1/alpha, f and c: the constants for moves of x and of A are the same, as |A| and |x| have one bound.

    |du| = |diag(u) A dx|, |d alpha| = |u^T A dx|, d(1/alpha) = -f^T A dx/alpha, df = S A dx.
    """
    rows = (
        ("u", _U, *_CHAIN, R * _ENTRY, Known.SHARP),
        ("alpha", _ALPHA, *_CHAIN, R * _NORM, Known.LOOSE),
        ("1/alpha", _ALPHA / beta**2, *_CHAIN, R * _INVERSE, Known.LOOSE),
        ("f", _F, *_CHAIN, R / 2, Known.PAIR),
        ("c", _M, *_READ, R / 2, Known.PAIR),
    )
    return tuple(Bound(quantity, moved, "any", "", *rest) for quantity, *rest in rows)


def _gradients() -> tuple[Bound, ...]:
    """The gradient and the Hessian of the normalized loss: |S^2 + T| times |A|^2.

    Every n, by the scatter form v^T (S^2 + T) v = sum_i f_i q_i (v_i - vbar)^2, q_i = 2 f_i - |f|^2 - b_i + <f, b>:
    |q_i| <= 1 + sqrt(2) |b|, and the variance of a unit v is at most 1/2.
    In the simplex b is a vertex e_k, as the form is linear in b. For i != k the largest q_i is at most
    3 f_i - 2 f_i^2 <= 9/8 if f_i >= 1/2, and at most 2 f_i - f_i^2 + 1/4 <= 1 if not; q_k is at most 2 f_k - 1 +
    f_k - f_k^2 <= 1. Downwards -q_i <= |f|^2 - t + (1 - 2 t) [i = k] with t = f_k, |f|^2 - t <= (1 - t)(1 - 2 t) and
    (v_k - vbar)^2 <= 2 (1 - t)^2: the form is not negative for t >= 1/2, and else at least
    -(1 - t)(1 - 2 t)(1/2 + 2 t (1 - t)) > -9/16.
    For a move of A, d(A^T S c) = dA^T S c + A^T d(S c) with |S c| <= |c|/2; |c| <= sqrt(2) in the simplex.
    """
    simplex, every = sp.Rational(9, 16) * R**2, (1 + sp.sqrt(2) * b_norm) / 2 * R**2
    two, ball = kappa() * R**2, kappa(target="ball") * R**2
    chain, move = R * _G, R * _G + 2 * (1 + b_norm)
    unit, unit_move = chain.subs(b_norm, 1), move.subs(b_norm, 1)
    hessian = sp.exp(20 * R**2) * n ** sp.Rational(3, 2) / beta**2
    return (
        Bound("gradient", "x", "simplex", "", unit, *_CHAIN, two, Known.TWO_ROWS),
        Bound("gradient", "x", "unit ball", "", unit, *_CHAIN, ball, Known.TWO_ROWS),
        Bound("gradient", "x", "simplex", "every n", unit, *_CHAIN, simplex, Known.LOOSE),
        Bound("gradient", "x", "ball", "every n", chain, *_CHAIN, every, Known.LOOSE),
        Bound(
            "gradient", "A", "simplex", "every n", unit_move, *_CHAIN, 1 / sp.sqrt(2) + simplex, Known.LOOSE
        ),
        Bound("gradient", "A", "ball", "every n", move, *_CHAIN, (1 + b_norm) / 2 + every, Known.LOOSE),
        Bound("Hessian", "x", "simplex", "", hessian, *_CHAIN, kappa3() * R**3, Known.TWO_ROWS),
    )


def _gradient_rescaled() -> sp.Expr:
    """Of the Hessian A^T [diag(u) Q diag(u) + diag(u * Qu)] A: |Qu|_oo = |r - <b, r> 1|_oo <= (1 + |b|) |r|."""
    return R**2 * (_SLOPE**2 + _ENTRY * (1 + b_norm) * _RESIDUAL)


def _rescaled() -> tuple[Bound, ...]:
    """dr = (I - b 1^T) diag(u) A dx; the gradient is A^T g with g = diag(u) (I - 1 b^T) r."""
    move = _SLOPE * _RESIDUAL + _gradient_rescaled()
    chain_move = (1 + b_norm) * _LONG**2 * (1 + sp.sqrt(n) * b_norm) + R * _FAR
    return (
        Bound("rescaled residual", "x", "ball", "", _R, *_CHAIN, R * _SLOPE, Known.LOOSE),
        Bound("rescaled residual", "A", "ball", "", _R, *_CHAIN, R * _SLOPE, Known.LOOSE),
        Bound("rescaled gradient", "x", "ball", "", R * _FAR, *_CHAIN, _gradient_rescaled(), Known.LOOSE),
        Bound("rescaled gradient", "A", "ball", "", chain_move, *_CHAIN, move, Known.LOOSE),
        Bound("rescaled gradient", "x", "ball", "every x", *_ABSENT, sp.oo, Known.NOTHING),
    )


def _targets() -> tuple[Bound, ...]:
    """The in-context theorem, b~ of an x-move and b^ of an A-move: b~ - b = f(x) - f(y), or (r(x) - r(y))/alpha(x)."""
    rescaled = R * _SLOPE * _INVERSE
    return (
        Bound("target", "x", "any", "", _M, *_READ, R / 2, Known.PAIR),
        Bound("target", "A", "any", "", _M, *_READ, R / 2, Known.PAIR),
        Bound("rescaled target", "x", "ball", "", _R / beta, *_CHAIN, rescaled, Known.LOOSE),
        Bound("rescaled target", "A", "ball", "", _R / beta, *_CHAIN, rescaled, Known.LOOSE),
    )


def _matrices() -> tuple[Bound, ...]:
    """Row by row, for Z = A1 X A2^T: every |Z_j| <= |A1| |X|_F |A2| <= R^2, and for each of the three moves |dZ|_F is
    at most its size times R. The Hessian is K^T diag(B_1, ..., B_m) K with K = A1 kron A2, a block for each row.
    """
    rows = [Bound("target", moved, "any", "", *_ABSENT, R / 2, Known.PAIR) for moved in ("X", "A1", "A2")]
    two, simplex = kappa() * R**2, sp.Rational(9, 16) * R**2
    rows += [
        Bound("gradient", "X", "simplex", "", *_ABSENT, two, Known.TWO_ROWS),
        Bound("gradient", "X", "simplex", "every n", *_ABSENT, simplex, Known.LOOSE),
    ]
    rows += [
        Bound("rescaled residual", moved, "ball", "", *_ABSENT, R * _SLOPE, Known.LOOSE)
        for moved in ("X", "A1", "A2")
    ]
    rows.append(Bound("rescaled gradient", "X", "ball", "", *_ABSENT, _gradient_rescaled(), Known.LOOSE))
    rows += [
        Bound("rescaled target", moved, "ball", "", *_ABSENT, R * _SLOPE * _INVERSE, Known.LOOSE)
        for moved in ("X", "A1", "A2")
    ]
    return tuple(rows)
