"""VGG11 of torchvision with a narrow classifier: its own has 120 million weights, a gigabyte for each example."""

from __future__ import annotations

import torch
from torch import nn
from torchvision.models import vgg11

from dpbench.models.synthetic import classify


def build(workload):
    with torch.device("meta"):
        model = vgg11(dropout=0.0, init_weights=False)
    model.classifier = nn.Sequential(
        nn.Linear(512 * 7 * 7, 16), nn.ReLU(True), nn.Linear(16, 16), nn.ReLU(True), nn.Linear(16, workload.classes)
    )
    model.features.to_empty(device="cpu")
    for module in model.features:
        if isinstance(module, nn.Conv2d):
            module.reset_parameters()

    def batches(size, seed):
        g = torch.Generator().manual_seed(seed)
        shape = (size, 3, workload.image_size, workload.image_size)
        return {"x": torch.randn(shape, generator=g), "y": torch.randint(workload.classes, (size,), generator=g)}

    return model, classify, batches
