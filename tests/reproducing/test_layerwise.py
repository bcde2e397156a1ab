"""The first ghost norm of a network, from sizes that are known by hand."""

from dpbench.paper import Figure, Row, Run
from dpbench.records import Cell, Workload
from dpbench.reproducing.layerwise import of_networks, values
from dpbench.reproducing.point import Point
from dpbench.reproduction import Number

RUN = Run(suite="s", quantities=("flops",))


def found(workload, printed=None, model=""):
    rows = (Row(model=model or workload.model, first_ghost_layer=printed),) if printed else ()
    figure = Figure(id="f", title="F", kind="decisions", printed="p", read="r", run=(RUN,), row=rows)
    networks = of_networks([Point(RUN, Cell("nonprivate", workload), None)] * 2, None)
    (value,) = values(figure, networks)
    return networks[workload], value


def test_layers_at_T_1_take_ghost_norms_from_the_first_on():
    layers, value = found(Workload(model="synthetic:mlp(width=16,depth=2)", batch=1), 1, "synthetic:mlp")
    assert [(a.T, a.d, a.p) for a in layers] == [(1, 16, 16), (1, 16, 16)]
    assert (value.absolute.published, value.absolute.predicted) == (Number(1.0), Number(1.0))
    assert value.absolute.off == 0


def test_where_no_layer_takes_one_it_is_a_word():
    # 2 T^2 = 512 is more than pd = 4.
    layers, value = found(Workload(model="layer:linear(d=2,p=2,first=true)", batch=1, seq_len=16), 1)
    assert [(a.T, a.d, a.p) for a in layers] == [(16, 2, 2)]
    assert value.absolute.predicted == Number(word="none")
    assert value.absolute.off is None
    assert value.row == "layer:linear(d=2,p=2,first=true) T=16"


def test_without_a_printed_place_there_is_ours_alone():
    _, value = found(Workload(model="layer:linear(d=2,p=2,first=true)", batch=1, seq_len=1))
    assert (value.absolute.published, value.absolute.predicted) == (Number(), Number(1.0))
