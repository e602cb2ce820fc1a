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
        (["van-der-pol", "--box", "x=0:1"], "`box` lacks the states ['y']"),
        (["lorenz", "--box", "x=0:1,y=0:1,z=0:1"], "two states"),
    ],
)
def test_faults(tmp_path, capsys, arguments, message):
    target = tmp_path / "p.png"
    assert main(["portrait", *arguments, "-o", str(target)]) == 2
    assert message in capsys.readouterr().err
    assert not target.exists()


def test_the_case_and_the_box_reach_the_picture(tmp_path):
    pictures = set()
    for number, arguments in enumerate(
        (
            ["softmax", "--case", "three-points"],
            ["softmax", "--case", "three-points-rescaled"],
            ["logistic", "--box", "x=-0.5:1.5"],
            ["logistic", "--box", "x=0.5:1.5"],
        )
    ):
        target = tmp_path / f"{number}.png"
        assert main(["portrait", *arguments, "-o", str(target)]) == 0
        pictures.add(target.read_bytes())
    assert len(pictures) == 4


def test_only_png(tmp_path, capsys):
    target = tmp_path / "p.pdf"
    assert main(["portrait", "softmax", "-o", str(target)]) == 2
    assert "must end with .png" in capsys.readouterr().err
    assert not target.exists()


def test_never_over_a_file_unasked(tmp_path, capsys):
    target = tmp_path / "p.png"
    target.write_text("precious")
    arguments = ["portrait", "softmax", "--case", "three-points", "-o", str(target)]
    assert main(arguments) == 2
    assert "--force" in capsys.readouterr().err
    assert target.read_text() == "precious"
    assert main([*arguments, "--force"]) == 0
    assert target.read_bytes().startswith(PNG)
