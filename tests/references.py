"""Independent reference numbers, as plain Python objects."""

import json
from functools import cache
from pathlib import Path


@cache
def reference(name: str):
    """The content of tests/data/NAME.json; its "source" entry says where the numbers come from."""
    return json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text())
