# %% [markdown]
# # A tour of ChatTTS Lab
#
# Say something, hear it, look at it, measure it. The nano voice is a small network of ChatTTS's own architecture
# that ships with the project; it knows numbers and short commands, in English.

# %% tags=["parameters"]
text = "three one four"
recipe = "ort-int8-dynamic"
voice = "nano"
store = ""  # results folder; empty: LABKIT_RESULTS or ./results

# %% [markdown]
# ## Say and hear

# %%
from IPython.display import Markdown, display

from labkit.report import markdown_table, plots
from labkit.report.notebook import player, refuse_unknown_parameters, show
from labkit.speak import say

refuse_unknown_parameters()
reference = say(text, voice=voice, recipe="torch-fp32")
player(reference.audio, label="torch-fp32")

# %% [markdown]
# The same words through another recipe: another engine, another precision, the same seed.

# %%
other = say(text, voice=voice, recipe=recipe)
player(other.audio, label=recipe)

# %% [markdown]
# ## See
#
# Time runs to the right, frequency upwards; bright is loud.

# %%
show(plots.spectrograms({"torch-fp32": reference.audio, recipe: other.audio}, title=text))

# %% [markdown]
# ## Measure
#
# `say` is for listening. A number that is kept comes from a run: a process of its own, with warm-ups, repetitions
# and a judge. Each run is recorded, whatever becomes of it.

# %%
from labkit.run import run
from labkit.spec import RunSpec, default_recipes

recipes = default_recipes()
documents = []
for name in ("torch-fp32", recipe):
    spec = RunSpec(recipe=recipes[name], voice=voice, scenario="replay", texts=3, repeats=2, quality=False)
    documents.append(run(spec, store=store or None, progress=print))

# %%
display(Markdown(markdown_table(documents, baseline="torch-fp32")))

# %% [markdown]
# ## Go on
#
# * `labkit sweep sweeps/demo.yaml` runs four recipes with quality and writes a page with plots and players.
# * `labkit recipes` lists what can be run here, and why something cannot.
# * `40_benchmark` is the notebook that sweeps execute, `90_sweep_report` reads what they found.
