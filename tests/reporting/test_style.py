from dpbench.reporting.style import style


def test_charts_look_alike_whatever_the_user_has_set():
    from matplotlib import rc_context, rcParams

    with rc_context({"font.size": 30, "axes.facecolor": "black", "svg.fonttype": "path"}):
        with style():
            inside = dict(rcParams)
        assert rcParams["font.size"] == 30
    assert (inside["font.size"], inside["axes.facecolor"], inside["svg.fonttype"]) == (8.5, "white", "none")
    assert (inside["axes.edgecolor"], inside["grid.color"]) == ("#555555", "#e6e6e6")
