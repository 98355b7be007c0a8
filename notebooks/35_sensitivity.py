# %% [markdown]
# # Which part minds being rounded
#
# Weights in 8 or 4 bits make a voice smaller and faster. Not every part of it takes that equally well: this notebook
# rounds one part at a time and looks at what the voice would then have said. It is the ground for recipes that mix
# precisions.

# %% tags=["parameters"]
voice = "nano"
stages = ["gpt", "decoder"]  # the vocoder is measured when it is named here
bits = [8, 6, 4, 3, 2]
block = 0  # inputs that share a scale; 0: one scale for each output channel
corpus = ""  # calibration list; empty: the one that fits the voice
texts = 16
budget = "kl<0.01"  # for the mixed recipe at the end; empty: search none

# %% [markdown]
# ## What the voice says
#
# The float32 recipe speaks some sentences of a calibration list, once; the recordings are kept. Everything below is
# teacher-forced on them: the recorded codes are fed, never drawn, so that no luck of sampling is in the figures.

# %%
from IPython.display import display

from labkit.report.notebook import refuse_unknown_parameters, show
from labkit.sensitivity import FIGURE_NAMES, MAIN_FIGURE, by_part, sensitivity, sensitivity_bars
from labkit.voices import resolve_voice

refuse_unknown_parameters()
table = sensitivity(
    resolve_voice(voice), stages=stages, bits=bits, block=block or None, corpus=corpus or None, texts=texts,
    progress=print,
)  # fmt: skip

# %% [markdown]
# ## One part at a time
#
# A *block* is one layer of the network; an *operator* is the same product in every block; an *edge* lies outside the
# blocks: heads, stems. *Every block* is all of them together, without the edges.

# %%
for stage in stages:
    print(f"{stage}: {FIGURE_NAMES[MAIN_FIGURE[stage]]}")
    display(by_part(table, stage).style.hide().format(precision=6))

# %% [markdown]
# ## Where it hurts
#
# Each bar is one part rounded while all others stay float32; the scale is logarithmic.

# %%
for stage in stages:
    display(show(sensitivity_bars(table, stage=stage, metric=MAIN_FIGURE[stage])))

# %% [markdown]
# ## Codes and sound
#
# The GPT decides codes by its logits, but the decoder reads its hidden states. The same rounding seen on both sides:

# %%
if "gpt" in stages:
    display(show(sensitivity_bars(table, metric="mel_db", kinds=["block", "operator", "all"])))

# %% [markdown]
# ## Does the damage show?
#
# The whole GPT, heads included, on ever fewer bits and with ever more weights set to zero. Each rung should be worse
# than the one above; *same* means within the noise of these sentences.

# %%
from labkit.sensitivity import ladder, ladder_table

if "gpt" in stages:
    rungs = ladder(resolve_voice(voice), corpus=corpus or None, texts=texts, progress=print)
    display(ladder_table(rungs).style.hide().format(precision=4))

# %% [markdown]
# ## A recipe of it
#
# Divergences of layers add up, so the best mix of precisions within a budget can be worked out; then it is made and
# measured, because a prediction is not a result.

# %%
from labkit.search import front_chart, search, words_of

if budget:
    found = search(resolve_voice(voice), budget=[budget], corpus=corpus or None, texts=texts, progress=print)
    display(show(front_chart(found)))

# %%
if budget:
    for each in found.tried:
        print(
            f"{words_of(each.precisions)}: predicted KL {each.predicted['kl']:.2g}, measured {each.measured.kl:.2g}"
        )

# %% [markdown]
# ## What to do with it
#
# * Parts with short bars can be rounded without a second thought; those with long ones are the ones to leave
#   in a wider precision.
# * `labkit recipe search -o recipes.yaml` writes the mix as a recipe, and `labkit run --recipes recipes.yaml` measures
#   it as any other.
# * The bars are about weights. Recipes that round activations as well (`int8-dynamic`, `int8-static`) lose more; the
#   search scales its predictions to what the engine really loses.
# * Heads and vocoder are measured here and never quantized unless a recipe asks for it.
