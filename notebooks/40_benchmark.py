# %% [markdown]
# # One run of the bench
#
# A run is one recipe on one voice, driven one way, measured in a process of its own. Sweeps execute this notebook
# once for every run of their grid; opened by hand it measures the run described below.

# %% tags=["parameters"]
spec = {
    "recipe": {"name": "torch-fp32"},
    "voice": "nano",
    "scenario": "single",
    "corpus": "nano-eval",
    "texts": 2,
    "repeats": 3,
    "keep_audio": True,
}
store = ""  # results folder; empty: LABKIT_RESULTS or ./results
sweep = ""  # the sweep that this run belongs to

# %% [markdown]
# ## What is asked for
#
# Names and values are checked before any work is done.

# %%
from IPython.display import Markdown, display

from labkit.report import markdown_table, plots
from labkit.report.audio import read_clip
from labkit.report.notebook import player, refuse_unknown_parameters, show
from labkit.results.frames import long_frame
from labkit.results.store import Store
from labkit.run import run
from labkit.spec import parse_run

refuse_unknown_parameters()
run_spec = parse_run(spec, place="parameter spec")
results = Store(store or None)
print(run_spec.model_dump_json(indent=1, exclude_defaults=True))

# %% [markdown]
# ## The run
#
# The kernel only orchestrates: preparation, measurement and judgement are processes of their own.

# %%
document = run(run_spec, store=results.folder, sweep=sweep or None, progress=print)

# %% [markdown]
# ## What was measured
#
# A failed run is a row like any other, with its reason.

# %%
Markdown(markdown_table([document], baseline=run_spec.recipe.name))

# %%
show(plots.stage_bars(long_frame([document])))

# %% [markdown]
# ## What it sounds like

# %%
kept = {sample.item: sample.audio for sample in document.samples if sample.audio}
clips = {item: read_clip(results.audio_file(document.run_id, name)) for item, name in kept.items()}
for item, samples in clips.items():
    display(player(samples, label=item))

# %%
show(plots.spectrograms(dict(list(clips.items())[:4]), title=run_spec.recipe.name))
