from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labkit.results.arrays import load_arrays, save_arrays


def test_arrays_are_there_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "clip.npz"
    assert load_arrays(file) == {}
    save_arrays(file, {"0.codes": np.arange(8).reshape(2, 4)})
    assert load_arrays(file)["0.codes"].shape == (2, 4)
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(OSError, match="No space"):
        save_arrays(tmp_path / "clip.npz", {"codes": np.arange(3)})
    assert list(tmp_path.iterdir()) == []
