"""When heads of separate attention leave zero, and in which order: against hand integrals, integrators and the flow."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sp
from references import reference

import odesys
from odesys.studies.separate import escape as quadrature
from odesys.studies.separate.cascade import TieError, drop_times, half_drop_delay
from odesys.studies.separate.escape import QuadratureError, escape_time, escapes
from symbolic.linear_attention import escape, separate

REFERENCE = reference("linear_attention_escape")
LAMBDA, CONTEXT = np.array([0.4, 0.3, 0.2, 0.1]), 31
E = np.eye(4)

#: Rounding through a sum of a thousand terms.
EXACT = 1e-13
#: A careful integration over a plateau, DOP853 at rtol 1e-12.
INTEGRATED = 1e-10


def one(v, k, q, eigenvalues=LAMBDA, **others):
    return float(escape_time(v, np.atleast_2d(k), np.atleast_2d(q), eigenvalues, **others))


def random_head(seed, rank=1, dim=4):
    draw = np.random.default_rng(seed)
    return draw.standard_normal(), draw.standard_normal((rank, dim)), draw.standard_normal((rank, dim))


class TestEscapeTime:
    def test_references(self):
        cases = REFERENCE["escape"]
        v, k, q = (np.array([case[name] for case in cases]) for name in "vkq")
        got = escape_time(v, k[:, None], q[:, None], LAMBDA)
        # The other quadrature's own accuracy, and that of stopping a direct integration short of the blow-up.
        np.testing.assert_allclose(got, [case["integral"] for case in cases], rtol=1e-11)
        np.testing.assert_allclose(got, [case["direct"] for case in cases], rtol=1e-8)
        assert {case["turning"] for case in cases} == {True, False}

    @pytest.mark.parametrize("size", [1.0, 1e-2, 1e-12, 1e-150])
    def test_aligned_start(self, size):
        # k = q = v e_d: t* = tau/(lam_d^2 v_0), at any size.
        for d, x in enumerate(LAMBDA):
            got = one(size, size * E[d], size * E[d], tau=2.5)
            assert got == pytest.approx(2.5 / (x**2 * size), rel=EXACT)

    def test_one_mode_faster_and_slower_than_aligned(self):
        # k = q = b e_1: f = c + b^2 e^{2 g theta}, c = v_0^2 - b^2; int dtheta/sqrt f by hand.
        g, b = 0.16, 0.01
        for v in (0.03, 0.011):
            c = math.sqrt(v**2 - b**2)
            assert one(v, b * E[0], b * E[0]) == pytest.approx(math.atanh(c / v) / (g * c), rel=EXACT)
        for v in (0.009, 0.001):
            c = math.sqrt(b**2 - v**2)
            assert one(v, b * E[0], b * E[0]) == pytest.approx(math.atan(c / v) / (g * c), rel=EXACT)
        assert one(0.0, b * E[0], b * E[0]) == pytest.approx(math.pi / 2 / (g * b), rel=EXACT)

    @pytest.mark.parametrize("v", [-0.009, -0.001, -1e-8])
    def test_a_head_of_the_wrong_sign_turns(self, v):
        # The same f with v_0 < 0 and c < 0: back to v = 0, then as from v = 0: (pi/2 + arctan(|v_0|/|c|))/(g |c|).
        g, b = 0.16, 0.01
        c = math.sqrt(b**2 - v**2)
        expected = (math.pi / 2 + math.atan(-v / c)) / (g * c)
        assert one(v, b * E[0], b * E[0]) == pytest.approx(expected, rel=EXACT)

    @pytest.mark.parametrize(
        ("v", "k", "q"),
        [
            (-0.01, 0.01 * E[0], 0.01 * E[0]),
            (-0.02, 0.01 * E[0], 0.01 * E[0]),
            (0.0, E[1], E[2]),
            (0.0, 0 * E[0], 0 * E[0]),
            (0.3, 0 * E[0], 0 * E[0]),
            (0.0, 0.3 * E[0] + 0.4 * E[1], 0.3 * E[0] - 0.4 * E[1]),
        ],
        ids=[
            "into the saddle",
            "into v < 0",
            "C3' point",
            "zero weights",
            "value alone",
            "forces 0.0144 - 0.0144",
        ],
    )
    def test_never(self, v, k, q):
        times, modes = escapes(v, k[None], q[None], LAMBDA)
        assert np.isinf(times)
        assert modes == -1

    @pytest.mark.parametrize("ratio", [1.0, 0.5, 1e-6, 1e-14])
    def test_one_mode_from_zero_value(self, ratio):
        # v_0 = 0: k^2 - v^2 and q^2 - v^2 are constant, so g t* = int_0^oo dv/sqrt((k^2 + v^2)(q^2 + v^2)), which is
        # pi/2 over the arithmetic-geometric mean of k and q (Gauss).
        k = 0.02
        expected = math.pi / 2 / (0.16 * float(mpmath.agm(k, ratio * k)))
        assert one(0.0, k * E[0], ratio * k * E[0]) == pytest.approx(expected, rel=EXACT)

    def test_rounding_does_not_turn_a_head_that_is_drawn_into_the_saddle(self):
        # v_0 = -|k|, k = q in a plane of rows: the minimum is zero, but not in float64.
        angles = np.linspace(0.1, 1.5, 40)
        k = 0.3 * np.stack([np.cos(angles), np.sin(angles)], axis=1)[..., None] * E[0]
        v = np.full(angles.shape, -0.3)
        assert len(set(np.sum(k**2, axis=(1, 2)) - v**2)) > 1
        assert np.all(np.isinf(escape_time(v, k, k, LAMBDA)))

    def test_rounding_does_not_move_a_head_from_a_fixed_point(self):
        # (C3') at v = 0: 0.4^2 * 0.3 * 0.3 = 0.3^2 * 0.4 * 0.4, but not in float64 once k and q are rescaled.
        sizes = np.linspace(0.1, 1.0, 40)[:, None]
        k, q = sizes * (0.3 * E[0] + 0.4 * E[1]), (0.3 * E[0] - 0.4 * E[1]) / sizes
        assert np.any((k * q) @ LAMBDA**2 != 0)
        assert np.all(np.isinf(escape_time(np.zeros(40), k[:, None], q[:, None], LAMBDA)))

    @pytest.mark.parametrize("sign", [1, -1], ids=["rises", "dips"])
    @pytest.mark.parametrize("seed", range(3))
    def test_against_adaptive_quadrature_of_the_derived_integrand(self, seed, sign):
        # v > |k| keeps f from reaching zero; the force at the start has the given sign.
        here = escape.model(dim=2, rank=2)
        _, k, q = random_head(seed, rank=2, dim=2)
        v, spectrum = 1.5 * np.linalg.norm(k), np.array([0.9, 0.5])
        q = sign * np.sign(np.sum(spectrum**2 * k * q)) * q
        v_0, plus, minus = here.starts
        symbols = (v_0, *plus, *minus, *here.attention.eigenvalues)
        numbers = map(float, (v, *(k + q).ravel(), *(k - q).ravel(), *spectrum))
        f = here.speed_squared.subs(dict(zip(symbols, numbers, strict=True)))
        integrand = sp.lambdify(escape.theta, 1 / sp.sqrt(f), "mpmath")
        expected = float(mpmath.quad(integrand, [0, 0.5, 1, 2, 4, 8, 16, 32, 64, 128]))
        assert one(v, k, q, spectrum) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("seed", range(8))
    def test_time_left_along_the_integrated_flow(self, seed):
        # t*(state at t) = t* - t, before, at and after a turn.
        v, k, q = random_head(seed, rank=2)
        flow = escape.model(dim=4, rank=2).flow
        start = dict(zip(flow.names, (v, *k.ravel(), *q.ravel()), strict=True))
        numbers = {f"lambda_{d}": x for d, x in enumerate(LAMBDA, 1)} | {"tau": 1.5}
        end = one(v, k, q, tau=1.5)
        times = end * np.array([0.0, 0.3, 0.6, 0.9, 0.97])
        run = odesys.solve(odesys.ODESystem(flow, numbers), start, times, method="DOP853", rtol=1e-12)
        states = np.stack([run[name].values for name in flow.names], axis=1)
        k, q = (part.reshape(-1, 2, 4) for part in np.split(states[:, 1:], 2, axis=1))
        left = escape_time(states[:, 0], k, q, LAMBDA, tau=1.5)
        np.testing.assert_allclose(left + times, end, rtol=INTEGRATED)

    def test_rows_may_be_turned_and_value_and_key_flipped(self):
        # (OK, OQ) is the same head, and so is (-v, -K, Q).
        v, k, q = random_head(1, rank=2)
        turn = np.array([[0.6, 0.8], [-0.8, 0.6]])
        end = one(v, k, q)
        assert one(v, turn @ k, turn @ q) == pytest.approx(end, rel=EXACT)
        assert one(-v, -k, q) == pytest.approx(end, rel=EXACT)

    def test_near_the_boundary_between_turn_and_dip_time_grows_like_the_logarithm(self):
        # One mode, s+ and s- of sizes p, m: f has its minimum v_0^2 - (p - m)^2/4 at e^{2 g theta} = m/p, where
        # f''/2 = g^2 p m. On either side of it int dtheta/sqrt f grows by ln(10)/sqrt(f''/2) for each factor 100 by
        # which the minimum falls.
        g, p, m = 0.16, 0.3, 0.7
        k, q = (p + m) / 2 * E[0], (p - m) / 2 * E[0]
        edge = (m - p) / 2
        slope = math.log(100) / (g * math.sqrt(p * m))
        for sign in (1, -1):
            times = [one(edge * (1 + sign * d), k, q) for d in (1e-5, 1e-7, 1e-9)]
            np.testing.assert_allclose(np.diff(times), slope, rtol=1e-4)  # next order, 1e-5 ln 1e5
        assert math.isinf(one(edge, k, q))

    def test_the_mode_that_is_learned(self):
        # The largest eigenvalue of what grows in the end: s+ after a rise or a turn to v > 0, s- if v stays negative.
        v, k, q = 0.01, 0.01 * E[2] + 0.02 * E[3], 0.01 * E[2] + 0.02 * E[3]
        assert escapes(v, k[None], q[None], LAMBDA)[1] == 2
        assert escapes(-0.03, (k + E[1] / 100)[None], (-k + E[1] / 100)[None], LAMBDA)[1] == 2
        assert escapes(v, (k + E[0])[None], (q + E[0])[None], np.array([0.0, 0.3, 0.2, 0.1]))[1] == 2
        turning = escapes(-0.001, (k + E[1] / 1000)[None], (k - E[1] / 1000)[None], LAMBDA)
        assert turning[1] == 2
        assert np.isfinite(turning[0])

    def test_a_learned_mode_stands_still(self):
        v, k, q = random_head(3)
        here = one(v, k, q, np.array([0.0, 0.3, 0.2, 0.1]))
        assert here == pytest.approx(one(v, k[:, 1:], q[:, 1:], LAMBDA[1:]), rel=EXACT)

    def test_heads_of_any_shape_and_very_different_size(self):
        # Sizes of one head spread over fourteen decades; halving the quadrature's step changes nothing.
        draw, shape = np.random.default_rng(0), (4, 5)

        def spread(*axes):
            return draw.standard_normal(axes) * 10.0 ** draw.uniform(-14, 0, axes)

        v, k, q = spread(*shape), spread(*shape, 2, 4), spread(*shape, 2, 4)
        times = escape_time(v, k, q, LAMBDA)
        assert times.shape == shape
        assert np.all(np.isfinite(times))
        for index in np.ndindex(shape):
            assert one(v[index], k[index], q[index]) == pytest.approx(times[index], rel=EXACT)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"k": np.ones((2, 4))}, "must have the shape of `v`, then"),
            ({"eigenvalues": LAMBDA[:2]}, r"`eigenvalues` must be D = 4 numbers; got the shape \(2,\)"),
            ({"v": np.array([np.nan])}, "must be finite"),
            ({"eigenvalues": -LAMBDA}, "eigenvalues >= 0"),
            ({"tau": 0.0}, "`tau` must be positive and finite; got 0.0"),
        ],
    )
    def test_refusals(self, change, message):
        good = {"v": np.ones(1), "k": np.ones((1, 1, 4)), "q": np.ones((1, 1, 4)), "eigenvalues": LAMBDA}
        with pytest.raises(ValueError, match=message):
            escape_time(**{**good, **change})

    def test_what_does_not_settle_is_not_returned(self, monkeypatch):
        monkeypatch.setattr(quadrature, "_STEP", 4.0)
        monkeypatch.setattr(quadrature, "_HALVINGS", 1)
        with pytest.raises(QuadratureError, match="did not settle"):
            escape_time(*random_head(0), LAMBDA)

    def test_what_float64_cannot_hold_is_refused(self):
        # e_1 only fades, by exp(-2 g_1 y) with g_1/g_2 = 10^4, while e_2 comes to its minimum.
        k, q = np.array([1.0, 0.5]), np.array([-1.0, -0.3])
        with pytest.raises(QuadratureError, match=r"1 heads have weights, or eigenvalues .* too far apart"):
            one(5.0, k, q, np.array([1.0, 0.01]))
        # k = q = b e_1 far below v: int dtheta/sqrt(v^2 + b^2 e^{2 g theta}) = ln(2 v/b)/(g v).
        assert one(1.0, 1e-120 * E[0], 1e-120 * E[0]) == pytest.approx(math.log(2e120) / 0.16, rel=EXACT)
        with pytest.raises(QuadratureError, match="too far apart in size for float64"):
            one(1.0, 1e-140 * E[0], 1e-140 * E[0])


class TestHalfDropDelay:
    def test_reference(self):
        # Mode 1, v_0 = 0.01: t* = 625 and the half drop at 619.018420388; the law of v_0 differs by (v_0/v*)^2/2.
        unit = 1 / (0.4**2 * 1.3096669533079181441)
        expected = 619.0184203884589747 + unit * (0.01 / 1.3096669533079181441) ** 2 / 2
        assert 625 + half_drop_delay(0.4, 1.0, 31) == pytest.approx(
            expected, abs=1e-8
        )  # next order, (v_0/v*)^5

    def test_it_is_the_limit_of_the_derived_half_time(self):
        here, start = separate.model(dim=2, heads=1), sp.Float("1e-9", 50)
        (symbol,) = here.closed_forms["scalar"].initial.values()
        numbers = {
            separate.lam: sp.Rational(3, 10),
            separate.a: 1 + (1 + sp.Rational(10, 3)) / 31,
            separate.tau: 2,
        }
        exact = here.half_time.subs(numbers).subs(symbol, start) - 2 / (sp.Rational(9, 100) * start)
        assert float(half_drop_delay(0.3, 1.0, 31, tau=2.0)) == pytest.approx(float(exact), rel=1e-14)


def start(eps, seed, heads=5, dim=4, rank=1, first_seed=1000):
    draw = eps * np.random.default_rng(first_seed + seed).standard_normal(heads + 2 * heads * rank * dim)
    k, q = (part.reshape(heads, rank, dim) for part in np.split(draw[heads:], 2))
    return draw[:heads], k, q


@pytest.fixture(scope="module")
def drops():
    """(case, cascade) of each random start of rank one, D = 4, H = 5."""
    return [
        (case, drop_times(*start(case["eps"], case["seed"]), LAMBDA, CONTEXT)) for case in REFERENCE["drops"]
    ]


class TestCascade:
    def test_other_implementation(self, drops):
        # Its heads are advanced by an integrator with errors of some 1e-9.
        for case, found in drops:
            np.testing.assert_allclose([drop.time for drop in found], case["cascade"], rtol=2e-8)

    def test_modes_are_learned_in_order_and_by_distinct_heads(self, drops):
        for _, found in drops:
            assert [drop.mode for drop in found] == [1, 2, 3, 4]
            assert len({drop.head for drop in found}) == 4

    def test_first_drop_of_the_full_flow(self, drops):
        # The reference's own error is 2e-6.
        errors = {}
        for case, found in drops:
            errors.setdefault(case["eps"], []).append(abs(found[0].time / case["flow"][0] - 1))
        worst = {eps: max(values) for eps, values in errors.items()}
        bounds = {0.1: 2e-3, 0.03: 2e-4, 0.01: 2e-5, 0.003: 1e-5, 0.001: 1e-5}
        assert all(worst[eps] < bound for eps, bound in bounds.items())
        assert worst[0.1] > worst[0.03] > worst[0.01] > worst[0.003]

    def test_later_drops_improve_with_the_start(self, drops):
        errors = {}
        for case, found in drops:
            gaps = [abs(drop.time / t - 1) for drop, t in zip(found[1:], case["flow"][1:], strict=True)]
            errors.setdefault(case["eps"], []).extend(gaps)
        medians = [float(np.median(errors[eps])) for eps in (0.1, 0.03, 0.01, 0.003, 0.001)]
        assert medians == sorted(medians, reverse=True)
        assert medians[-1] < 1e-3
        assert max(errors[0.001]) < 1e-2

    def test_the_largest_value_weight_alone_does_not_tell_the_time(self, drops):
        # tau/(lam_1^2 max|v_i(0)|) is off by a factor that no small start mends.
        ratios = {}
        for case, found in drops:
            v, _, _ = start(case["eps"], case["seed"])
            ratios.setdefault(case["eps"], []).append(1 / (0.16 * np.max(np.abs(v))) / found[0].time)
        assert all(min(values) < 0.55 for values in ratios.values())

    @pytest.mark.parametrize("rank", [1, 2, 4, 8])
    def test_first_drop_for_every_rank(self, rank):
        # D = 8, H = 9; exact formula by another quadrature, and the full flow at two sizes of the start.
        spectrum, errors = np.arange(8, 0, -1) / 36, {}
        for case in (c for c in REFERENCE["first_drops"] if c["rank"] == rank):
            weights = start(case["eps"], case["seed"], heads=9, dim=8, rank=rank, first_seed=500)
            (drop,) = drop_times(*weights, spectrum, CONTEXT, most=1)
            assert drop.time == pytest.approx(case["formula"], rel=1e-11)
            errors.setdefault(case["eps"], []).append(abs(drop.time / case["flow"] - 1))
        assert max(errors[0.01]) < 2.6e-3
        assert max(errors[0.002]) < 3.2e-4
        assert max(errors[0.002]) < max(errors[0.01])

    def test_aligned_heads_run_from_time_zero(self):
        # t_m = tau/(lam_m^2 v_m0) counted from the start: 625, 555.6, 833.3, 2500, mode 2 first.
        v = np.array([0.01, 0.02, 0.03, 0.04])
        k = (v[:, None] * E)[:, None]
        found = drop_times(v, k, k, LAMBDA, CONTEXT)
        by_mode = {drop.mode: drop for drop in found}
        assert [drop.mode for drop in found] == [2, 1, 3, 4]
        for d in range(4):
            assert by_mode[d + 1].escape == pytest.approx(1 / (LAMBDA[d] ** 2 * v[d]), rel=INTEGRATED)
            assert by_mode[d + 1].head == d + 1

    def test_as_many_drops_as_heads(self):
        v, k, q = start(0.01, 0)
        found = drop_times(v[:2], k[:2], q[:2], LAMBDA, CONTEXT)
        assert [drop.mode for drop in found] == [1, 2]
        assert drop_times(v[:2], k[:2], q[:2], LAMBDA, CONTEXT, most=1) == found[:1]

    def test_zero_weights_stay_at_the_saddle(self):
        assert drop_times(np.zeros(2), np.zeros((2, 1, 4)), np.zeros((2, 1, 4)), LAMBDA, CONTEXT) == ()

    def test_time_constant_is_a_unit_of_time(self):
        slow, fast = (drop_times(*start(0.01, 1), LAMBDA, CONTEXT, tau=tau) for tau in (2.533, 1.0))
        for one_drop, other in zip(slow, fast, strict=True):
            assert one_drop.time == pytest.approx(2.533 * other.time, rel=INTEGRATED)

    def test_equal_heads_are_refused(self):
        v, k, q = (np.repeat(part[:1], 2, axis=0) for part in start(0.01, 0))
        with pytest.raises(TieError, match=r"The heads \[1, 2\] escape at one time"):
            drop_times(v, k, q, LAMBDA, CONTEXT)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"k": np.ones((2, 4))}, "`k` three"),
            ({"eigenvalues": np.array([0.4, 0.3, 0.2, 0.0])}, "Eigenvalues must be positive and N >= 1"),
            ({"context": 0}, "Eigenvalues must be positive and N >= 1; got .* N = 0"),
            ({"k": np.ones((2, 2, 4)), "q": np.ones((2, 2, 4))}, "The cascade is for rank 1; got rank 2"),
        ],
    )
    def test_refusals(self, change, message):
        good = {"v": np.ones(2), "k": np.ones((2, 1, 4)), "q": np.ones((2, 1, 4)), "eigenvalues": LAMBDA}
        with pytest.raises(ValueError, match=message):
            drop_times(**{**good, "context": CONTEXT, **change})
