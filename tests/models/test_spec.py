import pytest

from dpbench.errors import DpbenchError
from dpbench.models.spec import Spec, parse


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
        ("my/file.py:make", Spec("file", "my/file.py:make")),
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
