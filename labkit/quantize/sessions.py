"""Run an exported graph here, to look at what its tensors carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Feed = Mapping[str, NDArray[Any]]


def open_session(model: Path, outputs: Sequence[str] = ()) -> Any:
    """A session on one thread; `outputs`, tensors of any type anywhere in the graph, replace the graph's own."""
    import onnx
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.intra_op_num_threads = 1
    settings.log_severity_level = 3
    if not outputs:
        return ort.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    proto = onnx.load(model, load_external_data=False)
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)
    settings.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", str(model.parent)
    )
    return ort.InferenceSession(proto.SerializeToString(), settings, providers=["CPUExecutionProvider"])


def typed(session: Any, feed: Feed) -> dict[str, NDArray[Any]]:
    """The inputs that the graph takes, in its types."""
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    return {
        value.name: feed[value.name].astype(types.get(value.type, feed[value.name].dtype), copy=False)
        for value in session.get_inputs()
    }
