"""Real architectures made small, each a few milliseconds a step, as workloads."""

from __future__ import annotations

from pathlib import Path

from dpbench.records import Workload

GPT2 = "n_embd=16,n_head=2,vocab_size=60,n_positions=16"
BERT = "hidden_size=16,num_attention_heads=2,intermediate_size=32,vocab_size=60,max_position_embeddings=18"
LLAMA = "hidden_size=16,num_attention_heads=2,num_key_value_heads=1,head_dim=8,intermediate_size=32,vocab_size=60"
VIT = "img_size=32,embed_dim=24,num_heads=2"


def text(model: str, **axes: object) -> Workload:
    return Workload(model=f"transformers:{model}", batch=5, seq_len=8, layers=2, **axes)  # type: ignore[arg-type]


def image(model: str, size: int = 32, **axes: object) -> Workload:
    return Workload(model=model, batch=5, image_size=size, classes=10, **axes)  # type: ignore[arg-type]


def family(name: str) -> Workload:
    file = Path(__file__).with_name("families.py")
    return Workload(model=f"{file}:{name}", batch=5, seq_len=4, classes=3)


TINY: dict[str, Workload] = {
    "gpt2": text(f"gpt2({GPT2})"),
    "gpt2 untied": text(f"gpt2({GPT2},tie_word_embeddings=false)"),
    "gpt2 eager": text(f"gpt2({GPT2})", attention="eager"),
    "gpt2 lora": text(f"gpt2({GPT2})", trainable="lora:r=2,targets=c_attn+c_proj"),
    "gpt2 biases": text(f"gpt2({GPT2})", trainable="biases"),
    "roberta": text(f"roberta-base({BERT})"),
    "roberta last layer": text(f"roberta-base({BERT})", trainable="last"),
    "bert": text(f"bert-base-uncased({BERT})", attention="eager"),
    "distilbert": text(
        "distilbert-base-uncased(dim=16,n_heads=2,hidden_dim=32,vocab_size=60,max_position_embeddings=16)"
    ),
    "llama": text(f"llama-3.2-1b({LLAMA})"),
    "qwen2": text(f"qwen2.5-0.5b({LLAMA.replace('head_dim=8,', '')})", attention="eager"),
    "gemma": text(f"gemma-2b({LLAMA})"),
    "opt": text("opt-125m(hidden_size=16,word_embed_proj_dim=16,num_attention_heads=2,ffn_dim=32,vocab_size=60)"),
    "pythia": text("pythia-70m(hidden_size=16,num_attention_heads=2,intermediate_size=32,vocab_size=60)"),
    "t5": text("t5-small(d_model=16,d_kv=8,d_ff=32,num_heads=2,vocab_size=60)"),
    "vit": image(f"timm:vit_tiny_patch16_224({VIT},depth=2)"),
    "cait": image(f"timm:cait_xxs24_224({VIT},depth=2)"),
    "beit": image(f"timm:beit_base_patch16_224({VIT},depth=2)"),
    "convnext": image("timm:convnext_atto(depths=[1,1,1,1],dims=[8,8,8,8])"),
    "swin": image(
        "timm:swin_tiny_patch4_window7_224(img_size=32,window_size=4,depths=[2,2],num_heads=[2,2],embed_dim=16)"
    ),
    "resnet18": image("torchvision:resnet18", norm="group"),
    "vgg11": image(f"{Path(__file__).with_name('vgg11.py')}:build"),
    "lstm": family("lstm"),
    "gru": family("gru"),
    "attention": family("attention"),
    "transposed": family("decoder"),
    "einsum": family("einsum"),
    "bags": family("bags"),
    "mlp, in-place, three axes": Workload(
        model="synthetic:mlp(width=12,depth=3,inplace=true)", batch=5, seq_len=4, classes=5
    ),
    "cnn": image("synthetic:cnn(channels=8,depth=2)", 8),
    "transformer": Workload(model="synthetic:transformer(width=16,heads=2,vocab=50)", batch=5, seq_len=8),
}
