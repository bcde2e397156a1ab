import pytest

from dpbench.errors import DpbenchError, Refused
from dpbench.models.spec import Spec, parse
from dpbench.records import Workload


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("transformers:gpt2", Spec("transformers", "gpt2")),
        (" timm:vit(depth=4) ", Spec("timm", "vit", {"depth": 4})),
        ("synthetic:mlp(width=8, inplace=true)", Spec("synthetic", "mlp", {"width": 8, "inplace": True})),
        ("timm:a(depths=[1,2],x=3)", Spec("timm", "a", {"depths": [1, 2], "x": 3})),
        ("transformers:a(eps=1e-5,act=gelu)", Spec("transformers", "a", {"eps": 1e-5, "act": "gelu"})),
        ("timm:a()", Spec("timm", "a")),
        ("some/where/config.json(n_layer=2)", Spec("transformers", "some/where/config.json", {"n_layer": 2})),
        ("timm:regnety_002.pycls_in1k", Spec("timm", "regnety_002.pycls_in1k")),
        ("transformers:gpt2(n_inner=none)", Spec("transformers", "gpt2", {"n_inner": None})),
        ("my/file.py:make", Spec("file", "my/file.py:make")),
        ("layer:embedding(V=1e6,d=5)", Spec("layer", "embedding", {"V": 1e6, "d": 5})),
        ("case:sharing/tied-head", Spec("case", "sharing/tied-head")),
    ],
)
def test_a_name_is_taken_apart(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tim:resnet18", r"unknown model family 'tim'. Did you mean timm\?.*expected family:name"),
        ("gpt2", r"unknown model family 'gpt2'.*Got 'gpt2'; expected family:name, a .json or file.py:build"),
        ("timm:", "names no model; expected timm:name. See: dpbench list models"),
        ("timm", "names no model; expected timm:name"),
        ("timm:vit(depth)", "option 'depth' of model 'timm:vit.depth.' has no value; expected name=value"),
        ("timm:vit(depth=1,depth=2)", "option 'depth' of model .* is given twice"),
        ("timm:vit(depth=1", "is not of the form family:name"),
        ("", "is not of the form family:name"),
    ],
)
def test_a_mistake_in_a_name_is_said(text, message):
    with pytest.raises(DpbenchError, match=message):
        parse(text)


def test_an_unknown_option_has_near_matches():
    with pytest.raises(DpbenchError, match=r"unknown option of timm:vit 'dept'. Did you mean depth\?"):
        Spec("timm", "vit", {"dept": 1}).take(["depth", "width"])


def test_an_axis_and_an_option_that_mean_the_same_must_agree():
    spec = Spec("timm", "vit", {"depth": 3})
    assert spec.settle("depth", "layers", Workload(model="", batch=1)) == 3
    assert spec.settle("depth", "layers", Workload(model="", batch=1, layers=3)) == 3
    assert Spec("timm", "vit").settle("depth", "layers", Workload(model="", batch=1, layers=5)) == 5
    with pytest.raises(DpbenchError, match="timm:vit is given depth=3 and layers=5, which mean the same; leave one"):
        spec.settle("depth", "layers", Workload(model="", batch=1, layers=5))


def test_an_axis_that_changes_nothing_is_refused():
    spec = Spec("timm", "vit")
    spec.refuse(Workload(model="", batch=1, classes=3), "seq_len")
    with pytest.raises(Refused, match="timm:vit has no axis seq_len; leave it out"):
        spec.refuse(Workload(model="", batch=1, seq_len=3), "seq_len")
