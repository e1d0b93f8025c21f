"""Small random models of timm, torchvision and diffusers, where these are installed: they are no dependencies of the tests."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from architectures import Made, pixels, redraw


def timm(name: str, size: int, **options: Any) -> Callable[[], Made]:
    """Return a builder for a model by the name that timm knows it by."""

    def build() -> Made:
        made = importlib.import_module("timm").create_model(name, **options)
        return redraw(made), {"x": pixels(size)}

    return build


def torchvision(name: str, inputs: Callable[[], dict[str, Any]], **options: Any) -> Callable[[], Made]:
    """Return a builder for a model by the name of its function."""

    def build() -> Made:
        models = importlib.import_module("torchvision").models
        found = next(part for part in (models, models.segmentation, models.detection) if hasattr(part, name))
        return redraw(getattr(found, name)(weights=None, **options)), inputs()

    return build


def diffusers(name: str, inputs: Callable[[], dict[str, Any]], **options: Any) -> Callable[[], Made]:
    """Return a builder for a model by the name of its class."""

    def build() -> Made:
        return redraw(getattr(importlib.import_module("diffusers"), name)(**options)), inputs()

    return build


def noisy() -> dict[str, Any]:
    """Return a noisy picture, the step and the text that it is denoised by."""
    text = torch.randn(2, 7, 16, generator=torch.Generator().manual_seed(4))
    picture = torch.randn(2, 4, 16, 16, generator=torch.Generator().manual_seed(3))
    return {"sample": picture, "timestep": torch.tensor([3, 7]), "encoder_hidden_states": text}


PICTURES: dict[str, Callable[[], Made]] = {
    "timm/resnet": timm("test_resnet", 64),
    "timm/vision_transformer": timm("test_vit", 64, img_size=64),
    "timm/convnext": timm("test_convnext", 64),
    "timm/efficientnet": timm("test_efficientnet", 64),
    "timm/swin_transformer": timm(
        "swin_tiny_patch4_window7_224", 64, img_size=64, window_size=4, embed_dim=16, depths=(2, 2), num_heads=(2, 4)
    ),
    "timm/mvitv2": timm("mvitv2_tiny", 64, img_size=64),
    "timm/coat": timm("coat_tiny", 64, img_size=64, embed_dims=(16, 16, 16, 16), serial_depths=(1, 1, 1, 1), parallel_depth=1),
    "timm/fastvit": timm("fastvit_t8", 64, layers=(1, 1, 1, 1), embed_dims=(16, 16, 32, 32)),
    "torchvision/resnet18": torchvision("resnet18", lambda: {"x": pixels(64)}),
    "torchvision/swin_t": torchvision("swin_t", lambda: {"x": pixels(64)}),
    "torchvision/deeplabv3_mobilenet_v3_large": torchvision(
        "deeplabv3_mobilenet_v3_large", lambda: {"x": pixels(64)}, weights_backbone=None
    ),
    "torchvision/fasterrcnn_mobilenet_v3_large_320_fpn": torchvision(
        "fasterrcnn_mobilenet_v3_large_320_fpn", lambda: {"images": [pixels(64)[0]]}, weights_backbone=None
    ),
    "diffusers/unet2d_cond": diffusers(
        "UNet2DConditionModel",
        noisy,
        sample_size=16,
        block_out_channels=(16, 32),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=4,
        norm_num_groups=8,
    ),
    "diffusers/vae_kl": diffusers(
        "AutoencoderKL",
        lambda: {"sample": pixels(32)},
        block_out_channels=(16, 32),
        down_block_types=("DownEncoderBlock2D",) * 2,
        up_block_types=("UpDecoderBlock2D",) * 2,
        norm_num_groups=8,
        latent_channels=4,
    ),
}
