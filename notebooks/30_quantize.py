# %% [markdown]
# # What rounding costs the voice
#
# The GPT's weights, and often the numbers between its layers, in 8 or 4 bits instead of 32: smaller, faster, and a
# little wrong. This notebook looks at what the layers see, makes the recipes, and asks each of them what it would have
# said where the float32 voice spoke.

# %% tags=["parameters"]
voice = "nano"
recipes = [
    "ort-int8-weight", "ort-int8-dynamic", "ort-int8-dynamic-gptq", "ort-int8-static",
    "ort-int4-rtn", "ort-int4-hqq", "ort-int4-gptq",
]  # fmt: skip
methods = ["max", "percentile"]  # ways to choose an activation's range; also mse and entropy
corpus = ""  # evaluation list to judge by; empty: the one that fits the voice
texts = 20

# %% [markdown]
# ## Calibration
#
# The float32 recipe speaks the sentences of a calibration list once, and the recordings are kept. Static quantization
# reads the range of each product's inputs off them; GPTQ asks them which directions of a product's inputs matter.

# %%
from labkit.calibration import calibration_set, judging_set
from labkit.report.notebook import refuse_unknown_parameters, show
from labkit.voices import resolve_voice

refuse_unknown_parameters()
spoken = resolve_voice(voice, progress=print)
recorded = calibration_set(spoken)
steps = [len(each.codes) for each in recorded.recordings()]
print(f"{len(steps)} sentences, {sum(steps)} decode steps; the first: {recorded.texts[0].text!r}")

# %% [markdown]
# ## Ranges
#
# One range has to hold all that a product is fed. The largest magnitude clips nothing; the 99.99th percentile clips
# what is rare, so that the common numbers get finer levels.

# %%
import pandas as pd

from labkit.artifacts import prepare
from labkit.spec import Recipe, StageChoice

ranges = {}
for method in methods:
    options = {"calibration": method, "algorithm": "rtn"}
    static = StageChoice(engine="ort-cpu", precision="int8-static", options=options)
    made = prepare(Recipe(name=f"static-{method}", gpt=static), spoken, progress=print)
    ranges[method] = made["gpt"].details["ranges"]
ranges = pd.DataFrame(ranges)

# %% [markdown]
# The inputs of a layer's `down` product (`product` below) are products themselves, so now and then one of them is huge:
# where the two bars differ most, 8 bits with one range are too few. Recipes give these inputs 16 bits, in two terms.

# %%
from IPython.display import display
from matplotlib.figure import Figure

figure = Figure(figsize=(7, 0.3 * len(ranges) + 1), layout="constrained")
axes = ranges.iloc[::-1].plot.barh(ax=figure.subplots(), width=0.8)
axes.set_xlabel("range of the inputs")
axes.spines[["top", "right"]].set_visible(False)
display(show(figure))

# %% [markdown]
# ## What each recipe would have said
#
# Teacher-forced on sentences of an evaluation list, which nothing was tuned on: the float32 voice's codes are fed to
# each recipe, and its answers are compared. Nothing is drawn, so no luck of sampling is in the figures.

# %%
from labkit.search.trials import try_recipes
from labkit.spec import find_recipe, load_recipes

known = load_recipes()
asked = {name: find_recipe(name, known) for name in recipes}
trials = try_recipes(asked, judging_set(spoken, corpus or None, texts), print)

# %% [markdown]
# `top1` is the share of equal most likely codes, `kl` the divergence of the code distributions in nats, `mel_db` the
# distance of what would be heard, `step` the CPU time of a decode step as a share of float32's.

# %%
table = pd.DataFrame({name: trial.as_dict() for name, trial in trials.items()}).T
table.insert(0, "gpt_mb", table.pop("gpt_bytes") / 1e6)
table = table.drop(columns="size_bytes").sort_values("kl")
formats = {"gpt_mb": "{:.1f}", "step": "{:.2f}", "kl": "{:.5f}", "mel_db": "{:.3f}"}
table["kl"] = table["kl"].clip(lower=0)  # float32 beside itself: rounding noise of either sign
display(table.style.format(formats, precision=4))

# %% [markdown]
# ## Size against damage
#
# Down and to the left is better; the scale of the damage is logarithmic.

# %%
from itertools import cycle

figure = Figure(figsize=(8, 4.5), layout="constrained")
axes = figure.subplots()
rounded = table[table["kl"] > 1e-7]  # float32 itself has no place on a logarithmic scale
for marker, (name, row) in zip(cycle("osD^vP*X<>"), rounded.sort_values("kl").iterrows()):
    axes.scatter(row["gpt_mb"], row["kl"], marker=marker, s=50, alpha=0.8, label=name)
figure.legend(loc="outside right upper", frameon=False, fontsize=8)  # names beside their points would overlap
axes.set(yscale="log", xlabel="GPT on disk, MB", ylabel="divergence from float32, nats a code")
axes.margins(x=0.1, y=0.15)
axes.spines[["top", "right"]].set_visible(False)
display(show(figure))

# %% [markdown]
# ## What to do with it
#
# * 8 bits with 16-bit activations, rounded with feedback (GPTQ), are nearly the float32 voice at half its size or less.
# * At 4 bits the way of rounding matters most: compare GPTQ with rounding to the nearest.
# * Sizes and times of `nano` say nothing about the full size: heads are most of it, and a step is mostly overhead.
#   `docs/quantization.md` has both.
