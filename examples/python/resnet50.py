# SPDX-License-Identifier: Apache-2.0
"""ResNet-50 (He et al., 2015, with the stride in the 3×3 convolution, as is usual), written out."""
import torch
from torch import nn

LAYERS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


class Bottleneck(nn.Module):
    def __init__(self, given, width, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(given, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))
        self.shortcut = nn.Identity() if given == 4 * width else nn.Sequential(
            nn.Conv2d(given, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet50(classes=1000):
    """161 parameters, 25.6 million numbers."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]
    given = 64
    for width, count, stride in LAYERS:
        for index in range(count):
            layers.append(Bottleneck(given, width, stride if index == 0 else 1))
            given = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, classes))
