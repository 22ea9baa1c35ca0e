"""Images for an encoder: square patches in the place of tokens (the Vision Transformer).

Layers, positions, norm and output are those of `EncoderOnly`; a linear map of a patch takes the
place of the table of tokens.
"""

from torch import Tensor, nn

from heed.errors import DataError
from heed.model.build import build_encoder
from heed.model.fast.products import Linear
from heed.model.one_stack.config import EncoderConfig
from heed.model.one_stack.encoder import EncoderOnly
from heed.model.plan import patches_plan


def patches(images: Tensor, size: int) -> Tensor:
    """Cut images into squares, row by row.

    A linear map of these is a convolution with kernels of `size` pixels that moves by `size`.

    Args:
        images: `(batch, n_channels, height, width)`.
        size: pixels along a side of a patch.

    Returns:
        `(batch, n_patches, n_channels * size * size)`.

    Raises:
        DataError: the patches do not fill the image.

    Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.
    """
    batch, n_channels, height, width = images.shape
    if height % size or width % size:
        raise DataError(
            f"patches of {size} × {size} pixels must fill an image, but it has {height} × {width}. "
            "Take a size that divides both, or pad the images."
        )
    squares = images.reshape(batch, n_channels, height // size, size, width // size, size)
    return squares.permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, n_channels * size * size)


def build_patch_encoder(config: EncoderConfig, *, patch_width: int) -> EncoderOnly:
    """An encoder that reads `patches` instead of ids, with fresh weights.

    Args:
        config: its shape; `src_vocab_size` counts the rows of the table that is replaced, so
            `tied` must be `none`.
        patch_width: numbers in a patch.
    """
    model = build_encoder(config)
    model.config = config
    project = Linear(patch_width, config.d_model)
    nn.init.xavier_uniform_(project.weight)
    nn.init.zeros_(project.bias)
    model.embed.tokens = project
    model.plan = patches_plan(config, patch_width)
    return model
