import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from dpbench.dropout import certain, without_dropout


class DropPath(nn.Module):
    """As in timm, which has a class of its own that draws by itself."""

    def forward(self, x):
        return x * torch.bernoulli(torch.full((len(x), 1), 0.5)) if self.training else x


class Attention(nn.Module):
    def __init__(self, causal=False, by_place=False):
        super().__init__()
        self.causal, self.by_place = causal, by_place

    def forward(self, x):
        q = x[:, None, :, None].expand(-1, 2, -1, 4)
        if self.by_place:
            return F.scaled_dot_product_attention(q, q, q, None, 0.5, self.causal).sum((1, 3))
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.5, is_causal=self.causal).sum((1, 3))


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class MultiHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 2, dropout=0.5, batch_first=True)

    def forward(self, x):
        x = x[:, None].expand(-1, 3, -1)
        return self.attention(x, x, x, need_weights=False)[0].sum(1)


class Recurrent(nn.Module):
    def __init__(self, module, *, packed=False):
        super().__init__()
        self.module, self.packed = module(6, 4, num_layers=2, dropout=0.5), packed

    def forward(self, x):
        x = x[None].expand(3, -1, -1)
        if not self.packed:
            return self.module(x)[0].sum(0)
        return self.module(pack_padded_sequence(x, torch.full((x.shape[1],), 3)))[0].data.view(3, -1, 4).sum(0)


MODELS = {
    "module": nn.Dropout(0.5),
    "own class": DropPath(),
    "function": Function(lambda x: F.dropout(x, 0.5, True)),
    "torch's function": Function(lambda x: torch.dropout(x, 0.5, True)),
    "by name": Function(lambda x: F.dropout(input=x, p=0.5)),
    "attention": Attention(),
    "causal attention": Attention(causal=True),
    "by place": Attention(causal=True, by_place=True),
    "multi-head": MultiHead(),
    "lstm": Recurrent(nn.LSTM),
    "gru": Recurrent(nn.GRU),
    "rnn": Recurrent(nn.RNN),
    "packed": Recurrent(nn.LSTM, packed=True),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_nothing_is_drawn(model):
    def losses(model, batch):
        return model(batch).pow(2).sum(1)

    model.train()
    certain, x = without_dropout(model, losses), torch.randn(8, 6)
    first, second = certain(model, x), certain(model, x)
    assert torch.equal(first, second)
    model.eval()
    if isinstance(model, nn.Dropout | DropPath | MultiHead | Recurrent):
        assert torch.allclose(first, losses(model, x)), "as in eval mode"


def test_causal_attention_stays_causal():
    x = torch.randn(2, 6)
    for model in (Attention(causal=True), Attention(causal=True, by_place=True)):
        certain = without_dropout(model, lambda m, b: m(b)[:, 0])
        changed = x.clone()
        changed[:, 3] += 1
        assert torch.equal(certain(model, x), certain(model, changed))


def test_batch_norm_and_the_rest_stay_in_training_mode():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 3))
    without_dropout(model, lambda m, b: m(b))
    assert [m.training for m in model] == [True, False, True]


def test_a_draw_on_the_cpu_does_not_start_cuda(monkeypatch):
    def started(*_):
        raise AssertionError("CUDA was started")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "_lazy_init", started)
    with certain():
        assert torch.equal(torch.rand(3), torch.full((3,), 0.5))
