"""README's Python runs as it stands and prints what README says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.skipif(not README.exists(), reason="the tests run away from the checkout")
def test_the_example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})
    # Each printed line stands as a comment behind the line that prints it.
    promised = re.findall(r"^print\(.*\) *# (.*)$", example, re.MULTILINE)
    assert printed.getvalue().splitlines() == promised
