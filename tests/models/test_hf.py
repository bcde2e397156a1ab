import json
import sys

import pytest
import torch

from dpbench.errors import DpbenchError, MissingExtra, Refused
from dpbench.losses import IGNORED
from dpbench.models import build, describe
from dpbench.models.hf import configurations
from dpbench.records import Workload
from tests.models.tiny import BERT, GPT2, TINY, text

pytest.importorskip("transformers")

PUBLISHED = {
    "gpt2": 124.4e6, "gpt2-medium": 354.8e6, "gpt2-large": 774.0e6, "gpt2-xl": 1557.6e6, "distilgpt2": 81.9e6,
    "bert-base-uncased": 109.5e6, "bert-large-uncased": 335.1e6, "roberta-base": 124.6e6, "roberta-large": 355.4e6,
    "distilbert-base-uncased": 67.0e6, "t5-small": 60.5e6, "t5-base": 222.9e6, "opt-125m": 125.2e6,
    "opt-1.3b": 1315.8e6, "pythia-70m": 70.43e6, "pythia-160m": 162.32e6, "pythia-410m": 405.33e6,
    "pythia-1b": 1011.8e6, "llama-3.2-1b": 1235.8e6, "llama-3.2-3b": 3212.7e6, "qwen2.5-0.5b": 494.0e6,
    "qwen2.5-1.5b": 1543.7e6, "gemma-2b": 2506.2e6,
}  # fmt: skip
"""Parameters as the model cards and the papers give them."""


def test_every_shipped_configuration_has_a_published_count():
    assert set(configurations()) == set(PUBLISHED)


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_as_many_as_published(name):
    with torch.device("meta"):
        task = build(Workload(model=f"transformers:{name}", batch=1))
    assert task.parameters == pytest.approx(PUBLISHED[name], rel=2e-3)


def test_nothing_is_dropped_unless_asked_for():
    dropped = [m.p for m in build(TINY["gpt2"]).model.modules() if isinstance(m, torch.nn.Dropout)]
    assert dropped
    assert not any(dropped)
    task = build(text(f"gpt2({GPT2},dropout=0.1)"))
    assert all(m.p == 0.1 for m in task.model.modules() if isinstance(m, torch.nn.Dropout))
    assert "dropout 0.1" in task.source


def test_a_causal_model_predicts_the_next_token():
    batch = build(TINY["gpt2"]).batches(2, 0)
    assert torch.equal(batch["labels"][:, :-1], batch["input_ids"][:, 1:])
    assert (batch["labels"][:, -1] == IGNORED).all()


@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma", "opt", "pythia"])
def test_no_token_sees_those_after_it(name):
    task = build(TINY[name])
    batch = task.batches(1, 0)
    ids = batch["input_ids"]
    inputs = {k: v for k, v in batch.items() if k != "labels"}
    changed = {**inputs, "input_ids": torch.cat([ids[:, :-1], (ids[:, -1:] + 1) % 50 + 4], 1)}
    before, after = task.model(**inputs).logits, task.model(**changed).logits
    assert torch.allclose(before[:, :-1], after[:, :-1])
    assert not torch.allclose(before[:, -1], after[:, -1])


@pytest.mark.parametrize("name", ["gpt2", "roberta", "llama", "opt", "pythia", "t5"])
def test_eager_and_fused_attention_compute_the_same(name):
    from dataclasses import replace

    eager, fused = (build(replace(TINY[name], attention=a)) for a in ("eager", "sdpa"))
    batch = eager.batches(2, 0)
    assert torch.allclose(eager.losses(eager.model, batch), fused.losses(fused.model, batch), rtol=1e-4)


@pytest.mark.parametrize("name", ["gpt2", "llama", "opt", "pythia"])
def test_the_explicit_mask_changes_nothing_against_the_models_own(name):
    task = build(TINY[name])
    batch = task.batches(2, 0)
    inputs = {k: v for k, v in batch.items() if k != "labels"}
    own = task.model(input_ids=batch["input_ids"]).logits
    assert torch.allclose(task.model(**inputs).logits, own, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2 eager", "roberta", "llama", "t5", "opt"])
def test_the_losses_run_under_vmap(name):
    from torch.func import functional_call, vmap

    task = build(TINY[name])
    batch = task.batches(3, 0)

    class One(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = task.model

        def forward(self, example):
            return task.losses(self.model, {k: v[None] for k, v in example.items()})[0]

    one = One()
    parameters = dict(one.named_parameters())
    each = vmap(lambda example: functional_call(one, parameters, (example,)))(batch)
    assert torch.allclose(each, task.losses(task.model, batch), rtol=1e-4)


def test_a_head_is_tied_or_not_as_asked():
    tied, untied = build(TINY["gpt2"]).model, build(TINY["gpt2 untied"]).model
    assert tied.lm_head.weight is tied.transformer.wte.weight
    assert untied.lm_head.weight is not untied.transformer.wte.weight


def test_classes_and_layers_are_axes():
    task = build(text(f"roberta-base({BERT})", classes=5))
    assert len(task.model.roberta.encoder.layer) == 2
    assert task.model.classifier.out_proj.out_features == 5
    assert task.batches(64, 0)["labels"].unique().numel() == 5


def test_encoders_never_get_a_padding_token():
    task = build(TINY["roberta"])
    assert (task.batches(64, 0)["input_ids"] != task.model.config.pad_token_id).all()


def test_both_stacks_of_t5_get_the_layers():
    model = build(TINY["t5"]).model
    assert (len(model.encoder.block), len(model.decoder.block)) == (2, 2)


def test_a_configuration_file_is_built(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "gpt2", "n_layer": 1, "n_embd": 8, "n_head": 2, "vocab_size": 30}))
    task = build(Workload(model=f"{path}(n_head=4)", batch=1, seq_len=4))
    assert (task.model.config.n_layer, task.model.config.n_head) == (1, 4)
    assert str(path) in describe(task)


LLAMA = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 50}
T5 = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 2, "vocab_size": 50}
OTHERS = [
    {"model_type": "llama", **LLAMA},
    {"model_type": "llama", **LLAMA, "rope_theta": 5e3, "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
    {"model_type": "gpt_neox", **LLAMA, "rotary_pct": 1.0, "rotary_emb_base": 1000},
    {"model_type": "t5", **T5},
    {"model_type": "t5", **T5, "feed_forward_proj": "gated-gelu"},
]


@pytest.mark.parametrize("facts", OTHERS)
def test_what_a_configuration_file_leaves_out_is_derived_as_transformers_does(tmp_path, facts):
    from transformers import AutoConfig

    path = tmp_path / "config.json"
    path.write_text(json.dumps(facts))
    expected = AutoConfig.for_model(**facts, use_cache=False).to_dict()
    got = build(Workload(model=str(path), batch=1, seq_len=4)).model.config.to_dict()
    apart = ("drop", "token_id", "architectures", "dtype", "_name_or_path")
    assert {k: v for k, v in got.items() if not any(a in k for a in apart)} == {
        k: v for k, v in expected.items() if not any(a in k for a in apart)
    }


def test_other_families_are_trained_for_what_they_are_made_for(tmp_path):
    small = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 50}
    encoder = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 16}
    for facts, name in [
        ({"model_type": "bart", **small, **heads}, "BartForConditionalGeneration"),
        ({"model_type": "xlm-roberta", **encoder, "vocab_size": 50}, "XLMRobertaForSequenceClassification"),
    ]:
        path = tmp_path / "config.json"
        path.write_text(json.dumps(facts))
        task = build(Workload(model=str(path), batch=1, seq_len=4))
        batch = task.batches(2, 0)
        assert type(task.model).__name__ == name
        assert task.losses(task.model, batch).shape == (2,)


def test_dropout_of_one_kind_may_be_asked_for_alone():
    task = build(text(f"gpt2({GPT2},resid_pdrop=0.2)"))
    assert (task.model.config.resid_pdrop, task.model.config.embd_pdrop) == (0.2, 0.0)
    assert "resid_pdrop 0.2" in task.source


def test_tokens_are_at_most_the_positions_where_nothing_is_said():
    assert build(Workload(model=f"transformers:gpt2({GPT2},n_layer=1)", batch=1)).tokens == 16
    assert build(Workload(model=f"transformers:roberta-base({BERT},num_hidden_layers=1)", batch=1)).tokens == 16


def test_the_last_layer_of_a_tied_model_is_its_head():
    from dataclasses import replace

    model = build(replace(TINY["gpt2"], trainable="last")).model
    assert [name for name, p in model.named_parameters() if p.requires_grad] == ["transformer.wte.weight"]


@pytest.mark.parametrize("axis", ["image_size", "classes"])
def test_an_axis_that_changes_nothing_is_refused(axis):
    with pytest.raises(Refused, match=f"transformers:gpt2 has no axis {axis}"):
        build(Workload(model="transformers:gpt2", batch=1, **{axis: 8}))


def test_layers_and_an_option_that_says_otherwise_are_refused():
    with pytest.raises(DpbenchError, match="is given n_layer=3 and layers=2, which mean the same"):
        build(text(f"gpt2({GPT2},n_layer=3)"))


def test_source_and_count_are_said():
    line = describe(build(TINY["gpt2 biases"]))
    assert "openai-community/gpt2" in line
    assert "parameters, " in line
    assert "of them trained" in line


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("transformers:gtp2", r"unknown Transformers model 'gtp2'. Did you mean gpt2"),
        ("transformers:gpt2(n_layers=2)", r"unknown option of transformers:gpt2 'n_layers'. Did you mean n_layer"),
        ("transformers:gpt2(n_embd=10,n_head=3,n_layer=1)", "transformers:gpt2 cannot be built"),
        ("transformers:gpt2(n_embd=abc)", "transformers:gpt2 cannot be built with n_embd=abc: .*expected int"),
        ("transformers:gpt2(n_head=0)", "transformers:gpt2 cannot be built with n_head=0"),
        ("transformers:gpt2(dropout=abc)", "is given dropout=abc; expected a number from 0 up to 1"),
        ("gone/config.json", "no file gone/config.json; expected a config.json of Transformers"),
    ],
)
def test_a_mistake_is_said(model, message):
    with pytest.raises(DpbenchError, match=message):
        build(Workload(model=model, batch=1))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no JSON"),
        ("{}", "has no model_type; expected a config.json of Transformers"),
        ('{"model_type": "gpt22"}', r"unknown Transformers model type 'gpt22'. Did you mean gpt2"),
    ],
)
def test_a_configuration_that_is_none_is_said(tmp_path, content, message):
    path = tmp_path / "config.json"
    path.write_text(content)
    with pytest.raises(DpbenchError, match=message):
        build(Workload(model=str(path), batch=1))


@pytest.mark.parametrize("name", ["gpt2", "roberta-base"])
def test_more_tokens_than_positions_are_refused(name):
    with pytest.raises(DpbenchError, match=r"positions; got seq_len 2000. Give max_position_embeddings="):
        build(Workload(model=f"transformers:{name}", batch=1, seq_len=2000))


def test_without_transformers_the_install_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtra, match=r"transformers is not installed.*pip install 'dpsgd-bench\[models\]'"):
        build(TINY["gpt2"])
