from pathlib import Path

import dpbench
from dpbench import reportpath


def test_in_a_checkout_it_is_the_directory_beside_the_package():
    assert reportpath.find("charts.mplstyle") == Path(dpbench.__file__).parents[1] / "report" / "charts.mplstyle"
    assert reportpath.find("charts.mplstyle").is_file()


def test_installed_it_lies_in_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(reportpath, "__file__", str(tmp_path / "dpbench" / "reportpath.py"))
    assert reportpath.find("page/page.css") == tmp_path / "dpbench" / "report" / "page" / "page.css"
