import errno
import os
import subprocess
import sys

import pytest

from dpbench.document import pictures
from dpbench.errors import DpbenchError
from tests.document.test_vector import chart

STARTS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def test_every_chart_in_every_format(tmp_path):
    written = pictures.write([chart(id="one"), chart(id="two")], tmp_path / "new" / "directory")
    assert [p.name for p in written] == [f"{name}.{suffix}" for name in ("one", "two") for suffix in STARTS]
    assert all(p.read_bytes().startswith(STARTS[p.suffix[1:]]) for p in written)
    assert sorted(written) == sorted((tmp_path / "new" / "directory").iterdir())


def test_they_are_white_behind(tmp_path):
    from matplotlib.image import imread

    (path,) = pictures.write([chart()], tmp_path, ["png"])
    assert imread(path)[0, 0].tolist() == [1, 1, 1, 1]


def test_written_on_another_day_and_beside_other_formats_the_bytes_are_the_same(tmp_path):
    code = (
        "from pathlib import Path\nfrom dpbench.document import pictures\n"
        "from tests.document.test_vector import chart\n"
        f"pictures.write([chart()], Path({str(tmp_path / 'then')!r}), ['pdf', 'svg', 'png'])"
    )
    # Of 1970, for matplotlib and for fontTools.
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"SOURCE_DATE_EPOCH": "86400"})
    for suffix in STARTS:
        (now,) = pictures.write([chart()], tmp_path, [suffix])
        assert now.read_bytes() == (tmp_path / "then" / now.name).read_bytes()


def test_a_full_disk_leaves_no_half_file_and_the_one_from_before(tmp_path, monkeypatch):
    (before,) = pictures.write([chart()], tmp_path, ["png"])
    whole = before.read_bytes()

    def full(figure, path, **options):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    with pytest.raises(OSError, match="No space left"):
        pictures.write([chart(), chart(id="two")], tmp_path, ["png"])
    assert list(tmp_path.iterdir()) == [before]
    assert before.read_bytes() == whole


def test_an_unknown_format_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DpbenchError, match="unknown format of charts 'bmp'. Known: pdf, png, svg"):
        pictures.write([chart()], tmp_path / "none", ["svg", "bmp"])
    assert not list(tmp_path.iterdir())
