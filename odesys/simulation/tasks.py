"""Data: in-context linear regression, as a finite and reproducible set of sequences.

    x_n, x_q ~ N(0, Lambda) in R^D,    w ~ N(0, I_D) one per sequence,    y_n = w.x_n,  y_q = w.x_q

A sequence is the matrix X of D+1 rows and N+1 columns whose columns are (x_n, y_n) for the N context pairs
and (x_q, 0) for the query; the label y_q is kept apart. Two variants exist, both as in the authors' code:

* varying context length: each sequence asks at each of its positions, so that its first n pairs are the context
  of x_{n+1}, for n = 1, ..., N; every length weighs the same;
* a mixture of in-context and in-weight sequences: w is random in a fraction c of them and one and the same
  vector, |w|^2 = D, in the rest. With c = 0 the context labels would tell nothing new and are independent
  N(0, 1) instead, so that only the weights can know w; such data also test what a network knows in its weights.

Source: arXiv:2501.16265v2, in-context linear regression task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from odesys.simulation._arguments import whole
from odesys.simulation._random import Stream, generator

__all__ = ["Batch", "LinearRegression", "linear_regression"]

# Each batch has its own random stream. Its size is part of what a seed means; do not change it.
_BATCH = 4096


class Batch(NamedTuple):
    """P sequences with their answers."""

    prompts: Float[np.ndarray, "P E T"]
    """X, E = D+1 rows and T = N+1 columns (n+1 where the length n varies); the last column is (x_q, 0)."""
    labels: Float[np.ndarray, " P"]
    """y_q."""


@dataclass(frozen=True, eq=False)
class LinearRegression:
    """A finite data set of in-context linear regression; `linear_regression` makes one from plain numbers.

    Args:
        eigenvalues: of the covariance Lambda = basis diag(eigenvalues) basis^T, shape (D,).
        basis: orthogonal, its columns e_d are the eigenvectors, shape (D, D).
        context: N, the number of context pairs; the query is not counted.
        sequences: P, the size of the data set.
        seed: fixes every number of the data set.
        whiten_tasks: centre the P task vectors and whiten them exactly, (1/P) sum w w^T = I (the authors'
            data).
        centre_inputs: centre x at each position over the P sequences (the authors' data).
        vary_context: each sequence asks at each position, with 1, ..., N pairs before it.
        in_context: c, the fraction of sequences whose task w is random; they come first.
        fixed_task: w of the others, shape (D,); by default a random direction with |w|^2 = D.
    Raises:
        ValueError: sizes, eigenvalues or a fraction that no data set can have.
    """

    eigenvalues: Float[np.ndarray, " D"]
    basis: Float[np.ndarray, "D D"]
    context: int
    sequences: int
    seed: int
    whiten_tasks: bool = False
    centre_inputs: bool = False
    vary_context: bool = False
    in_context: float = 1.0
    fixed_task: Float[np.ndarray, " D"] | None = None

    def __post_init__(self):
        for name, minimum, meaning in (
            ("context", 1, "the number N of context pairs, the query not counted,"),
            ("sequences", 1, "the number P of sequences"),
            ("seed", 0, "the seed of the data"),
        ):
            object.__setattr__(self, name, whole(name, getattr(self, name), minimum, meaning))
        if not (isinstance(self.in_context, Real) and 0 <= self.in_context <= 1):
            raise ValueError(
                f"`in_context` is the fraction of sequences with a random task, from 0 to 1; got {self.in_context!r}."
            )
        if self.fixed_task is None:
            drawn = generator(self.seed, Stream.FIXED_TASK).standard_normal(self.dim)
            object.__setattr__(self, "fixed_task", drawn * np.sqrt(self.dim) / np.linalg.norm(drawn))
        for name in ("eigenvalues", "basis", "fixed_task"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        _check_eigenvalues(self.eigenvalues)
        if self.whiten_tasks and self.in_context < 1:
            raise ValueError(
                f"`whiten_tasks` is for data whose tasks are all random, in_context = 1; got in_context = "
                f"{self.in_context:g}. Leave it out, as the authors do for a mixture."
            )
        if self.whiten_tasks and self.sequences <= self.dim:
            raise ValueError(
                f"`whiten_tasks` needs more sequences than dimensions: {self.sequences} centred task vectors "
                f"span at most {self.sequences - 1} of {self.dim}. Raise `sequences` above {self.dim}."
            )

    @property
    def dim(self) -> int:
        """D, the dimension of x."""
        return len(self.eigenvalues)

    @property
    def covariance(self) -> Float[np.ndarray, "D D"]:
        """Lambda, the covariance of x that is sampled from (not that of the sample)."""
        return (self.basis * self.eigenvalues) @ self.basis.T

    @property
    def lengths(self) -> tuple[int, ...]:
        """The numbers n of context pairs that occur, each equally often."""
        return tuple(range(1, self.context + 1)) if self.vary_context else (self.context,)

    @property
    def effective_context(self) -> float:
        """1/mean(1/n), which takes the place of N in the theory of the normalisation "mean"."""
        return len(self.lengths) / sum(1 / n for n in self.lengths)

    @property
    def examples(self) -> int:
        """The number of prompts with a label: P, or P N where the context length varies."""
        return self.sequences * len(self.lengths)

    def fresh(self, seed: int, **changes) -> LinearRegression:
        """Other sequences with the same covariance and the same fixed task, to test on.

        Args:
            seed: of the new sequences.
            **changes: other fields to change; `in_context=0.0` tests what is known in weights,
                `in_context=1.0` what is learned in context.
        """
        return replace(self, seed=seed, **changes)

    def batches(self) -> Iterator[Batch]:
        """The data set in consecutive pieces of bounded size, always the same ones.

        Where the context length varies, each piece comes once for each of `lengths`, in this order.
        """
        start = 0
        for number, tokens in enumerate(self._tokens()):
            tokens -= self._mean
            tasks = self.tasks[start : start + len(tokens)]
            answers = np.einsum("pnd,pd->pn", tokens, tasks)
            sequences = np.empty((len(tokens), self.dim + 1, self.context + 1))
            sequences[:, :-1] = tokens.transpose(0, 2, 1)
            sequences[:, -1] = answers
            if self.in_context == 0:
                source = generator(self.seed, Stream.CONTEXT_LABELS, number)
                sequences[:, -1] = source.standard_normal(answers.shape)
            for length in self.lengths:
                prompts = sequences[:, :, : length + 1].copy()
                prompts[:, -1, -1] = 0.0
                yield Batch(prompts, answers[:, length].copy())
            start += len(tokens)

    def data(self) -> Batch:
        """All P sequences at once: 8 P (D+1)(N+1) bytes.

        Raises:
            ValueError: the context length varies, so that no one array holds them.
        """
        if self.vary_context:
            raise ValueError("Prompts of several lengths fit no one array. Go through them by `batches()`.")
        prompts, labels = zip(*self.batches(), strict=True)
        return Batch(np.concatenate(prompts), np.concatenate(labels))

    @property
    def description(self) -> dict[str, object]:
        """What fixes the data set, as attributes of a result: numbers and text, which NetCDF takes."""
        return {
            "task": "in-context linear regression",
            "dim": self.dim,
            "context": self.context,
            "sequences": self.sequences,
            "task_seed": self.seed,
            "eigenvalues": self.eigenvalues,
            "whiten_tasks": str(self.whiten_tasks),
            "centre_inputs": str(self.centre_inputs),
            "vary_context": str(self.vary_context),
            "in_context": float(self.in_context),
            **({"fixed_task": self.fixed_task} if self.in_context < 1 else {}),
        }

    @cached_property
    def tasks(self) -> Float[np.ndarray, "P D"]:
        """The task vectors w, one row for each sequence."""
        tasks = generator(self.seed, Stream.TASKS).standard_normal((self.sequences, self.dim))
        if self.whiten_tasks:
            tasks -= tasks.mean(axis=0)
            # The symmetric square root: of all whitenings it moves the vectors least.
            sizes, axes = np.linalg.eigh(tasks.T @ tasks / self.sequences)
            tasks = tasks @ (axes / np.sqrt(sizes)) @ axes.T
        tasks[round(self.in_context * self.sequences) :] = self.fixed_task
        tasks.setflags(write=False)
        return tasks

    @cached_property
    def _mean(self) -> Float[np.ndarray, "T D"]:
        if not self.centre_inputs:
            return np.zeros((self.context + 1, self.dim))
        return sum(tokens.sum(axis=0) for tokens in self._tokens()) / self.sequences

    def _tokens(self) -> Iterator[Float[np.ndarray, "P T D"]]:
        root = np.sqrt(self.eigenvalues)[:, None] * self.basis.T
        for number, start in enumerate(range(0, self.sequences, _BATCH)):
            size = min(_BATCH, self.sequences - start)
            normal = generator(self.seed, Stream.TOKENS, number).standard_normal(
                (size, self.context + 1, self.dim)
            )
            yield normal @ root


def linear_regression(
    *,
    dim: int,
    context: int,
    sequences: int,
    seed: int,
    eigenvalues: Sequence[float] | Float[np.ndarray, " D"] | None = None,
    covariance: Float[np.ndarray, "D D"] | None = None,
    rotate: bool = False,
    whiten_tasks: bool = False,
    centre_inputs: bool = False,
    vary_context: bool = False,
    in_context: float = 1.0,
    fixed_task: Sequence[float] | Float[np.ndarray, " D"] | None = None,
) -> LinearRegression:
    """In-context linear regression with Gaussian tokens, as a finite data set.

    Args:
        dim: D, the dimension of x.
        context: N, the number of context pairs; the query is not counted (the authors' seq_len is N + 1).
        sequences: P, the size of the data set.
        seed: fixes every number; data sets of the same seed and more sequences begin with the same sequences.
        eigenvalues: of the covariance, which is diagonal unless `rotate`; by default D, ..., 1 with trace
            one.
        covariance: the covariance itself instead, any symmetric positive definite matrix; its eigenvalues are
            then ordered downwards.
        rotate: turn the eigenbasis by a uniformly random rotation drawn from the seed.
        whiten_tasks, centre_inputs: the two corrections that the authors' data have, see `LinearRegression`.
        vary_context: each sequence asks at each of its positions, with 1, ..., N pairs before it.
        in_context: c, the fraction of sequences with a random task; the rest has the task `fixed_task`, by default
            a random direction with |w|^2 = D.
    Raises:
        ValueError: `dim` < 1, `context` < 1, `sequences` < 1; eigenvalues that are not `dim` positive finite
            numbers; a covariance that is not symmetric and positive definite of that size; both of them;
            whitening with `sequences` <= `dim` or of a mixture; a fraction outside [0, 1].

    Source: arXiv:2501.16265v2, in-context linear regression task.
    """
    dim = whole("dim", dim, 1, "the dimension D of x")
    if covariance is not None:
        if eigenvalues is not None:
            raise ValueError(
                "`covariance` has its own eigenvalues; give `eigenvalues` or `covariance`, not both."
            )
        spectrum, basis = _decompose(np.asarray(covariance, dtype=np.float64), dim)
    else:
        default = np.arange(dim, 0, -1) * 2 / (dim * (dim + 1))
        spectrum = default if eigenvalues is None else np.asarray(eigenvalues, dtype=np.float64)
        if spectrum.shape != (dim,):
            raise ValueError(f"`eigenvalues` must hold dim = {dim} numbers; got shape {spectrum.shape}.")
        basis = np.eye(dim)
    if fixed_task is not None:
        fixed_task = np.asarray(fixed_task, dtype=np.float64)
        if fixed_task.shape != (dim,) or not np.isfinite(fixed_task).all():
            raise ValueError(f"`fixed_task` must hold dim = {dim} finite numbers; got {fixed_task.tolist()}.")
    if rotate:
        basis = (
            _rotation(generator(whole("seed", seed, 0, "the seed of the data"), Stream.ROTATION), dim) @ basis
        )
    return LinearRegression(
        spectrum,
        basis,
        context,
        sequences,
        seed,
        whiten_tasks,
        centre_inputs,
        vary_context,
        in_context,
        fixed_task,
    )


def _rotation(source: np.random.Generator, dim: int) -> Float[np.ndarray, "D D"]:
    """Uniform (Haar) orthogonal matrix: QR of a Gaussian matrix, with the signs that make it unique."""
    q, r = np.linalg.qr(source.standard_normal((dim, dim)))
    return q * np.sign(np.diagonal(r))


def _check_eigenvalues(eigenvalues: np.ndarray) -> None:
    if eigenvalues.size == 0 or not (np.isfinite(eigenvalues).all() and (eigenvalues > 0).all()):
        raise ValueError(
            f"`eigenvalues` of the covariance must be positive and finite; got {eigenvalues.tolist()}. "
            "A direction without variance cannot be learned: leave it out."
        )


def _decompose(covariance: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    if covariance.shape != (dim, dim):
        raise ValueError(
            f"`covariance` must have shape {(dim, dim)} since dim = {dim}; got {covariance.shape}."
        )
    if not np.isfinite(covariance).all() or not np.allclose(covariance, covariance.T, rtol=1e-12, atol=0):
        raise ValueError("`covariance` must be finite and symmetric; got\n" + np.array2string(covariance))
    eigenvalues, basis = np.linalg.eigh(covariance)
    if eigenvalues[0] <= 0:
        raise ValueError(
            f"`covariance` must be positive definite; its smallest eigenvalue is {eigenvalues[0]:.3g}."
        )
    return eigenvalues[::-1], basis[:, ::-1]
