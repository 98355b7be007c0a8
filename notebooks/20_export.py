# %% [markdown]
# # Two graphs of one voice
#
# A voice's networks leave torch as ONNX graphs. The GPT has two: one of ONNX Runtime's own fused operators, which the
# lab runs because it reads its weights near the memory's bandwidth, and one of standard operators, which TensorRT,
# OpenVINO and other runtimes can read. Decoder and vocoder are of standard operators in both.

# %% tags=["parameters"]
voice = "nano"
out = ""  # new or empty folder that keeps the graphs; empty: a temporary one
half = True  # also in fp16: the voice speaks 16 sentences to find what overflows

# %% [markdown]
# ## Export
#
# Each graph is made from the weights, passed through ONNX's checker with shape inference, run beside torch, and kept in
# a cache by the hash of what decides its bytes; the export copies it, with a manifest.

# %%
import tempfile
from pathlib import Path

from labkit.artifacts.exporting import export_table, export_voice, operator_table, parity_table
from labkit.report.notebook import refuse_unknown_parameters, show
from labkit.voices import resolve_voice

refuse_unknown_parameters()
spoken = resolve_voice(voice, progress=print)
folder = Path(out or tempfile.mkdtemp(prefix="labkit-export-"))
portable = export_voice(spoken, folder / "portable", encoder=True, progress=print)
fused = export_voice(spoken, folder / "ort", graph="ort", stages=["gpt"], progress=print)
print(f"in {folder}")

# %% [markdown]
# ## What was written
#
# `encoder` is the DVAE's other direction, mel to codes; speaking does not need it.

# %%
from IPython.display import display

made = [*fused, *portable]
display(export_table(made).drop(columns="nodes kept in fp32").style.hide().format(precision=2))

# %% [markdown]
# ## Which operators
#
# What is one node in the fused graph is a dozen standard ones in the other.

# %%
from matplotlib.figure import Figure

operators = operator_table({"GPT, ort": fused[0], "GPT, portable": portable[0]})
figure = Figure(figsize=(7, 0.28 * len(operators) + 1), layout="constrained")
axes = operators.iloc[::-1].plot.barh(ax=figure.subplots(), width=0.8, color=["#4c72b0", "#dd8452"])
axes.set_xlabel("nodes")
axes.spines[["top", "right"]].set_visible(False)
display(show(figure))

# %% [markdown]
# ## Equal to torch?
#
# Seeded prompts and teacher-forced steps, a batch of mixed lengths, and as many positions as the voice has (1024 at
# most): the largest absolute difference to torch in fp32. Differences of this size change no code but in a tie.

# %%
table = parity_table(made)
differences = table[table["output"] != "codes"]
display(
    differences.pivot_table(
        index=["stage", "graph", "output"], columns="case", values="max_abs", sort=False
    ).style.format("{:.1e}", na_rep="")
)
print(f"largest difference anywhere: {differences['max_abs'].max():.1e}")

# %% [markdown]
# ## In half precision
#
# Graphs for other runtimes are wanted in fp16. Where a number comes near the largest that fp16 can hold, on sentences
# that the voice really speaks, the node stays in fp32; so do code heads, sums of squares, and the vocoder from its head
# on. A CPU gains nothing from it but the size.

# %%
if half:
    halves = export_voice(spoken, folder / "fp16", precision="fp16", progress=print)
    display(export_table(halves).drop(columns=["export, s", "opset"]).style.hide().format(precision=2))

# %% [markdown]
# ## For other runtimes
#
# The manifest names inputs and outputs with their shapes, and for compilers that ask for them the smallest, the most
# usual and the largest shape of each. The embedding tables stay in the voice's own file: docs/export.md shows a loop.

# %%
import pandas as pd

gpt = portable[0].manifest
shapes = pd.DataFrame(gpt["graph"]["inputs"]).T
display(shapes[~shapes.index.str.contains(r"_[1-9]\d*$")])
display(pd.DataFrame({name: gpt["profiles"]["step"][name] for name in ("embeddings", "padding", "past_key_0")},
                     index=["smallest", "usual", "largest"]))  # fmt: skip
