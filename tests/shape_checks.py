"""The type checker of the tests: it enforces array shapes and leaves other annotations to the code itself.

The package answers a wrong number or name with an error of its own, which tests must be able to reach.
"""

from typing import Any, get_args

from beartype import beartype
from jaxtyping import AbstractArray

__all__ = ["shapes_only"]


def shapes_only(function):
    """`function` with those annotations enforced that name the shape of an array."""
    function.__annotations__ = {
        name: annotation if _names_a_shape(annotation) else Any
        for name, annotation in function.__annotations__.items()
    }
    return beartype(function)


def _names_a_shape(annotation) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, AbstractArray):
        return True
    return any(_names_a_shape(part) for part in get_args(annotation))
