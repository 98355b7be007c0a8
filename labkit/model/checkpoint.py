"""Weights on disk <-> modules. The only place where the model package touches weight files.

`load_gpt`, `load_decoder`, `load_dvae` and `load_vocoder` read one stage each from a voice's asset folder, straight
into its parameters; `load_embeddings` gives the embedding tables as NumPy arrays to a process without torch;
`save_voice` writes the same layout. Weight norm is folded on loading and written again on saving. Tensors that are
missing, misshapen or unexpected are refused by file and name.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from labkit.errors import CheckpointError
from labkit.model import layout
from labkit.model.config import AudioConfig, VoiceConfig
from labkit.model.layout import VoiceCard, asset_folder, read_config
from labkit.model.pieces import (
    DVAE_CONSTANTS,
    IGNORED,
    VOCODER_CONSTANTS,
    Piece,
    decoder_pieces,
    gpt_pieces,
    vocoder_pieces,
)
from labkit.model.tensorfile import TensorFile, write_tensors

if TYPE_CHECKING:
    import torch
    from torch import nn

    from labkit.model.dvae import Decoder, Dvae
    from labkit.model.gpt import Gpt
    from labkit.model.vocoder import Vocoder

FloatArray = NDArray[np.float32]
M = TypeVar("M", bound="nn.Module")


class Embeddings(NamedTuple):
    """text: [num_text_tokens, hidden]; code: [num_codebooks, num_code_tokens, hidden]; float32, read-only."""

    text: FloatArray
    code: FloatArray

    def text_rows(self, ids: NDArray[np.integer]) -> FloatArray:
        """Rows of the text table, a copy [..., hidden]. A mapped table's pages are given back: the kernel brings in
        sixteen for each that is read, which for a prompt of 300 tokens at full size is 20 MB."""
        rows: FloatArray = np.asarray(self.text[ids])  # indexing copied it already
        if isinstance(mapping := self.text.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            mapping.madvise(mmap.MADV_DONTNEED)
        return rows


def load_gpt(folder: Path, dtype: torch.dtype | None = None, *, decoding_layout: bool = True) -> Gpt:
    """The GPT with its heads, ready for inference, in float32 unless `dtype` says otherwise.

    `decoding_layout` applies to float32 alone; turn it off when the network is cast afterwards.
    """
    import torch

    from labkit.model.gpt import Gpt

    asset, config = _open(folder)
    by_column = decoding_layout and dtype in (None, torch.float32)
    build = lambda: Gpt(config.gpt).lay_out_for_decoding() if by_column else Gpt(config.gpt)  # noqa: E731
    return _load(build, asset, lambda _: gpt_pieces(config.gpt), dtype)


def load_decoder(folder: Path, dtype: torch.dtype | None = None) -> Decoder:
    """Hidden states -> log-mel."""
    from labkit.model.dvae import Decoder

    asset, config = _open(folder)
    build = lambda: Decoder(config.decoder, config.audio)  # noqa: E731
    return _load(build, asset, lambda shapes: decoder_pieces(shapes, layout.DECODER_WEIGHTS), dtype)


def load_dvae(folder: Path, dtype: torch.dtype | None = None) -> Dvae:
    """Codes <-> log-mel, encoder included."""
    from labkit.model.dvae import Dvae

    asset, config = _open(folder)
    build = lambda: Dvae(config.dvae, config.audio)  # noqa: E731
    return _load(build, asset, lambda shapes: decoder_pieces(shapes, layout.DVAE_WEIGHTS), dtype)


def load_vocoder(folder: Path, dtype: torch.dtype | None = None) -> Vocoder:
    """Log-mel -> audio."""
    from labkit.model.vocoder import Vocoder

    asset, config = _open(folder)
    return _load(lambda: Vocoder(config.vocoder, config.audio), asset, vocoder_pieces, dtype)


def load_embeddings(folder: Path) -> Embeddings:
    """The embedding tables without torch: the text table is mapped from the file when that holds float32."""
    asset, config = _open(folder)
    gpt, file = config.gpt, TensorFile(asset / layout.EMBED_WEIGHTS)
    text = file.view("emb_text.weight", (gpt.num_text_tokens, gpt.hidden))
    shape = (gpt.num_code_tokens, gpt.hidden)
    code = np.stack([file.read(f"emb_code.{i}.weight", shape) for i in range(gpt.num_codebooks)])
    code.setflags(write=False)
    return Embeddings(text, code)


def load_text_head(folder: Path) -> FloatArray:
    """The head of the refine stage, [num_text_tokens, hidden], without torch: text logits are hidden @ head.T."""
    asset, config = _open(folder)
    (piece,) = [piece for piece in gpt_pieces(config.gpt) if piece.parameter == "text_head.weight"]
    head = np.empty(piece.shape, np.float32)
    _read_piece(TensorFile(asset / piece.file), piece, head)
    return head


def save_voice(
    asset: Path,
    config: VoiceConfig,
    card: VoiceCard,
    *,
    gpt: Gpt | None = None,
    decoder: Decoder | None = None,
    dvae: Dvae | None = None,
    vocoder: Vocoder | None = None,
    half: bool = True,
) -> None:
    """Write the descriptions and the given stages into an asset folder that ChatTTS itself can load.

    `half` stores matrices as float16; vectors, scales and constants stay float32 (they are small, and they matter).
    Stages that are not given keep the files they have.
    """
    layout.write_descriptions(asset, config, card)
    for module in (gpt, decoder, dvae, vocoder):
        if module is None:
            continue
        state = {name: tensor.detach().float().cpu().numpy() for name, tensor in module.state_dict().items()}
        shapes = {name: value.shape for name, value in state.items()}
        for file, pieces in files_of(module, shapes, config).items():
            write_pieces(asset / file, pieces, partial(_rows, state), config.audio, half)


def files_of(
    module: nn.Module | type[nn.Module], shapes: Mapping[str, tuple[int, ...]], config: VoiceConfig
) -> dict[str, list[Piece]]:
    """File -> its pieces, for one of the four stage modules (or its class)."""
    kind = module if isinstance(module, type) else type(module)
    pieces = {
        "Gpt": lambda: gpt_pieces(config.gpt),
        "Decoder": lambda: decoder_pieces(shapes, layout.DECODER_WEIGHTS),
        "Dvae": lambda: decoder_pieces(shapes, layout.DVAE_WEIGHTS),
        "Vocoder": lambda: vocoder_pieces(shapes),
    }[kind.__name__]()
    by_file: dict[str, list[Piece]] = {}
    for piece in pieces:
        by_file.setdefault(piece.file, []).append(piece)
    return by_file


def write_pieces(
    path: Path, pieces: list[Piece], rows: Callable[[Piece], FloatArray], audio: AudioConfig, half: bool
) -> None:
    """Write one weight file, asking `rows` for one piece at a time; the constants that belong to it are added."""
    matrix = "F16" if half else "F32"
    specs: dict[str, tuple[str, tuple[int, ...]]] = {}
    source: dict[str, Callable[[], FloatArray]] = {}
    for piece in pieces:
        for name, shape in piece.stored().items():
            small = len([n for n in shape if n > 1]) < 2
            specs[name] = ("F32" if small else matrix, shape)
            if piece.weight_norm and name.endswith("0"):
                source[name] = partial(_lengths, rows, piece, half)
            else:
                source[name] = partial(rows, piece)
    for name, value in _constants(path.name, audio).items():
        specs[name], source[name] = ("F32", value.shape), partial(np.asarray, value)
    write_tensors(path, specs, lambda name: source[name]())


def _open(folder: Path) -> tuple[Path, VoiceConfig]:
    asset = asset_folder(Path(folder))
    return asset, read_config(asset)


def _load(
    build: Callable[[], M],
    asset: Path,
    pieces_of: Callable[[Mapping[str, tuple[int, ...]]], list[Piece]],
    dtype: torch.dtype | None,
) -> M:
    import torch

    from labkit.model.no_init import without_initialization

    with without_initialization():
        module = build().to(dtype or torch.float32).eval().requires_grad_(False)
    state = module.state_dict()
    pieces = pieces_of({name: tuple(tensor.shape) for name, tensor in state.items()})
    files = {file: TensorFile(asset / file) for file in sorted({piece.file for piece in pieces})}
    for file, opened in files.items():
        _refuse_extra(opened, file, [piece for piece in pieces if piece.file == file])
    for piece in pieces:
        target = state[piece.parameter][piece.first : piece.first + piece.shape[0]]
        if target.dtype == torch.float32 and target.is_contiguous():
            _read_piece(files[piece.file], piece, target.numpy())
        else:
            wide = np.empty(piece.shape, np.float32)
            _read_piece(files[piece.file], piece, wide)
            target.copy_(torch.from_numpy(wide))
    return module


def _read_piece(file: TensorFile, piece: Piece, out: FloatArray) -> None:
    if not piece.weight_norm:
        file.read_into(piece.key, out)
        return
    (length_name, length_shape), (direction_name, _) = piece.stored().items()
    lengths = file.read(length_name, length_shape)[:, 0]
    file.read_into(direction_name, out)
    norms = np.sqrt(np.einsum("ij,ij->i", out, out))
    if not norms.all():
        raise CheckpointError(
            f"{file.path}: {direction_name!r} has a row of zeros; weight norm cannot fold it."
        )
    out *= (lengths / norms)[:, None]


def _refuse_extra(file: TensorFile, name: str, pieces: list[Piece]) -> None:
    expected = {key for piece in pieces for key in piece.stored()}
    known = expected | set(_constants(name, AudioConfig()))
    ignored = IGNORED.get(name)
    extra = [k for k in file.entries if k not in known and not (ignored and ignored.fullmatch(k))]
    if extra:
        shown = ", ".join(f"{k!r} {file.entries[k].shape}" for k in sorted(extra)[:3])
        more = f" and {len(extra) - 3} more" if len(extra) > 3 else ""
        raise CheckpointError(
            f"{file.path}: unexpected tensors {shown}{more}; the file belongs to a voice of other sizes or kind."
        )


def _constants(file: str, audio: AudioConfig) -> dict[str, FloatArray]:
    known = {layout.DVAE_WEIGHTS: DVAE_CONSTANTS, layout.VOCODER_WEIGHTS: VOCODER_CONSTANTS}
    names = known.get(file)
    if names is None:
        return {}
    from labkit.model.features import hann_window, mel_filterbank

    values = {"window": hann_window(audio.n_fft), "filters": mel_filterbank(audio)}
    return {key: values[kind].numpy() for kind, keys in names.items() for key in keys}


def _rows(state: Mapping[str, FloatArray], piece: Piece) -> FloatArray:
    return state[piece.parameter][piece.first : piece.first + piece.shape[0]]


def _lengths(rows: Callable[[Piece], FloatArray], piece: Piece, half: bool) -> FloatArray:
    """Row lengths of what will be stored, [rows, 1], so that folding gives exactly the stored rows back."""
    stored = rows(piece)
    if half:
        stored = stored.astype(np.float16).astype(np.float32)
    return np.sqrt(np.einsum("ij,ij->i", stored, stored))[:, None]
