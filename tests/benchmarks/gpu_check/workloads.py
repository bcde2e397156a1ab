"""The networks that are checked: small enough for seconds, of the families that people train."""

from __future__ import annotations

from dpbench.records import Workload
from tests.benchmarks.gpu_check.driver import DEVICE

IMPLEMENTATIONS = (
    *("nonprivate", "tf_privacy", "vmap", "opacus", "opacus_improved", "fastgradclip", "fastgradclip_improved"),
    *("ghostclip", "mixghostclip", "bk", "bk_mixghostclip", "bk_mixopt"),
)

GPT2 = "transformers:gpt2(n_embd=192,n_head=3,vocab_size=4096)"

SMALL = {
    "gpt2": Workload(model=GPT2, layers=2, seq_len=32, batch=3, device=DEVICE),
    "cnn": Workload(model="synthetic:cnn(channels=32,depth=4)", image_size=32, batch=3, device=DEVICE),
    "vit": Workload(model="timm:vit_tiny_patch16_224", layers=2, image_size=64, batch=3, device=DEVICE),
}
"""For gradients."""

WIDE = {
    "gpt2": Workload(model=GPT2, layers=4, seq_len=128, batch=32, attention="eager", device=DEVICE),
    "cnn": Workload(model="synthetic:cnn(channels=64,depth=4)", image_size=64, batch=32, device=DEVICE),
    "vit": Workload(
        model="timm:vit_small_patch16_224", layers=4, image_size=224, batch=16, attention="eager", device=DEVICE
    ),
}
"""For memory: what is alive is large beside the units in which an allocator gives it out."""
