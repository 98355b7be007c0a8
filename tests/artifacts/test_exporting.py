from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from labkit.artifacts.exporting import Exported, export_voice, operator_table, parity_table
from labkit.errors import SpecError, UserError
from labkit.export.describe import profiles
from labkit.quantize.sessions import open_session
from labkit.voices import Voice


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> Path:
    """The cache of made graphs and recordings that the tests share."""
    folder: Path = tmp_path_factory.mktemp("cache")
    return folder


@pytest.fixture(autouse=True)
def cached(cache: Path, monkeypatch) -> None:
    monkeypatch.setenv("LABKIT_CACHE", str(cache))


@pytest.fixture(scope="module")
def portable(tiny_voice: Voice, cache: Path, tmp_path_factory) -> list[Exported]:
    return export_voice(tiny_voice, tmp_path_factory.mktemp("portable"), encoder=True, cache=cache)


def test_each_graph_has_a_folder_and_a_manifest_that_tells_all(
    tiny_voice: Voice, portable: list[Exported]
) -> None:
    assert [each.name for each in portable] == ["gpt", "decoder", "vocoder", "encoder"]
    for each in portable:
        manifest = json.loads((each.folder / "manifest.json").read_text())
        assert manifest == each.manifest
        assert manifest["weights_hash"] == tiny_voice.weights_hash
        assert manifest["graph"]["opsets"] == {"ai.onnx": 18}
        assert manifest["graph"]["inputs"] and manifest["graph"]["outputs"]
        assert manifest["inputs"]["tools"].keys() == {"torch", "onnx", "onnxruntime"}
        assert {"export", "parity"} <= manifest["seconds"].keys()
        assert {name: file["size_bytes"] for name, file in manifest["files"].items()} == {
            path.name: path.stat().st_size for path in each.folder.iterdir() if path.name != "manifest.json"
        }
        onnx.checker.check_model(str(each.folder / manifest["graph"]["file"]), full_check=True)
    assert not [path for path in portable[0].folder.parent.iterdir() if path.name.startswith(".")]


def test_parity_is_told_for_the_smallest_and_the_largest_shape(portable: list[Exported]) -> None:
    table = parity_table(portable)
    assert {"smallest", "mixed batch", "largest"} <= set(table.loc[table["stage"] == "gpt", "case"])
    assert table["max_abs"].max() < 1e-4
    assert portable[-1].worst_difference == "100.0% of codes equal"
    assert float(portable[0].worst_difference) == pytest.approx(
        table.loc[table["stage"] == "gpt", "max_abs"].max(), rel=0.1
    )


def test_the_loop_of_the_documentation_speaks(tiny_voice: Voice, portable: list[Exported]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "export.md").read_text(encoding="utf-8")
    loop = page.split("```python\n")[1].split("```")[0]
    loop = loop.replace("exported/", f"{portable[0].folder.parent}/").replace(
        "asset/", f"{tiny_voice.folder}/"
    )
    names = {"ids": np.arange(5)}
    exec(loop.replace("range(200)", "range(6)"), names)
    steps = len(names["states"])
    assert names["audio"].shape == (1, 256 * (2 * steps - 1))
    assert names["x"].shape == (1, 1, tiny_voice.config.gpt.hidden)


def test_profiles_fit_the_graph(tiny_voice: Voice, portable: list[Exported]) -> None:
    gpt = portable[0]
    assert gpt.manifest["profiles"].keys() == {"prompt", "step"}
    step = gpt.manifest["profiles"]["step"]
    assert step["padding"] == [[1], [1], [4]]
    assert step["embeddings"][2] == [4, 1, 48]
    assert step["past_key_0"][2][2] == tiny_voice.config.gpt.positions - 1
    for shapes in gpt.manifest["profiles"].values():
        session = open_session(gpt.folder / gpt.manifest["graph"]["file"])
        types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
        for which in range(2):
            feed = {
                given.name: np.zeros(shapes[given.name][which], types[given.type])
                for given in session.get_inputs()
            }
            assert session.run(["hidden"], feed)[0].shape == (1, 48)


def test_the_graph_of_onnx_runtime_is_the_other_choice(
    tiny_voice: Voice, cache: Path, tmp_path: Path, portable: list[Exported]
) -> None:
    (made,) = export_voice(tiny_voice, tmp_path, graph="ort", stages=["gpt"], cache=cache)
    table = operator_table({"ort": made, "portable": portable[0]})
    assert table.loc["com.microsoft.GroupQueryAttention", "ort"] == tiny_voice.config.gpt.layers
    assert table.loc["Softmax"].to_dict() == {"ort": 0, "portable": tiny_voice.config.gpt.layers}
    assert list(table.sum(axis=1)) == sorted(table.sum(axis=1), reverse=True)
    assert made.manifest["profiles"] == profiles(made.folder / "gpt.onnx", 256) == {}


@pytest.mark.filterwarnings("ignore::labkit.text.check.DomainWarning")
def test_fp8_is_for_export_and_says_so(tiny_voice: Voice, cache: Path, tmp_path: Path) -> None:
    made = {each.name: each for each in export_voice(tiny_voice, tmp_path, precision="fp8", cache=cache)}
    details = made["gpt"].manifest["details"]
    assert "not runnable on CPU" in details["runs_here"]
    assert details["quantized_nodes"] == 4 * tiny_voice.config.gpt.layers
    assert made["gpt"].manifest["choice"]["precision"] == "fp8"
    assert "parity" not in details
    assert made["gpt"].worst_difference.startswith("cosine 0.9")
    model = onnx.load(made["gpt"].folder / "gpt.onnx")
    kinds = {tensor.name: tensor.data_type for tensor in model.graph.initializer}
    assert kinds["0.down.weight.codes"] == onnx.TensorProto.FLOAT8E4M3FN
    assert kinds["logits.weight"] == onnx.TensorProto.FLOAT
    assert made["vocoder"].manifest["details"]["kept_in_fp32"].keys() == {"vocoder head and after"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"stages": ["gtp"]}, "stage 'gtp' is unknown; known: gpt, decoder, vocoder"),
        ({"stages": []}, "no stage"),
        ({"inverse_stft": "torch"}, "inverse STFT 'torch' is unknown; known: graph, numpy"),
        ({"precision": "fp8", "graph": "ort"}, "ask for the portable graph"),
    ],
)
def test_what_cannot_be_is_refused_before_any_work(
    tiny_voice: Voice, tmp_path: Path, wanted: dict, message: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SpecError, match=message):
        export_voice(tiny_voice, out, **wanted)
    assert not out.exists()


def test_a_file_in_the_way_or_a_full_folder_is_left_alone(tiny_voice: Voice, tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("mine")
    for out in (tmp_path, file):
        with pytest.raises(UserError, match="name another folder"):
            export_voice(tiny_voice, out)
    assert file.read_text() == "mine"
