"""`odesys portrait`: a picture in a file, and one line for every fault."""

import pytest

from odesys.cli import main

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["softmax", "--case", "three-points"],
        ["van-der-pol", "--box", "x=-3:3,y=-3:3"],
        ["logistic", "--box", "x=-0.5:1.5"],
    ],
)
def test_pictures(tmp_path, capsys, arguments):
    target = tmp_path / "p.png"
    assert main(["portrait", *arguments, "-o", str(target)]) == 0
    assert target.read_bytes().startswith(PNG)
    assert [path.name for path in tmp_path.iterdir()] == ["p.png"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "There is no model"),
        (["softmax", "--case", "nothing"], "two-minima"),
        (["softmax", "--box", "x=0:1"], "means nothing"),
        (["merged", "--case", "two-minima"], "means nothing"),
        (["van-der-pol"], "--box x=-2:2,y=-2:2"),
        (["van-der-pol", "--box", "x=0"], "must look like"),
        (["van-der-pol", "--box", "x=0:1"], "has no bounds"),
        (["lorenz", "--box", "x=0:1,y=0:1,z=0:1"], "two states"),
    ],
)
def test_faults(tmp_path, capsys, arguments, message):
    target = tmp_path / "p.png"
    assert main(["portrait", *arguments, "-o", str(target)]) == 2
    assert message in capsys.readouterr().err
    assert not target.exists()


def test_only_png_and_never_over_a_file(tmp_path, capsys):
    assert main(["portrait", "softmax", "-o", str(tmp_path / "p.pdf")]) == 2
    target = tmp_path / "p.png"
    target.write_text("precious")
    assert main(["portrait", "softmax", "--case", "three-points", "-o", str(target)]) == 2
    assert target.read_text() == "precious"
