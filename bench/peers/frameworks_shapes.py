# SPDX-License-Identifier: Apache-2.0
"""The shapes that the frameworks' sides of a comparison have in common."""


def resnet50_counts():
    """Elements of each gradient, in the order of the parameters."""
    def convolution(out, into, window):
        return [out * into * window * window, out, out]
    counts, width = convolution(64, 3, 7), 64
    for planes, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            counts += convolution(planes, width, 1) + convolution(planes, planes, 3) + convolution(planes * 4, planes, 1)
            if block == 0:
                counts += convolution(planes * 4, width, 1)
            width = planes * 4
    return counts + [1000 * width, 1000]
