# %% [markdown]
# # What a sweep found
#
# From the results store to tables, plots and one HTML page. Nothing is measured here: it can be run on any machine
# that has a copy of the results folder.

# %% tags=["parameters"]
sweep = "demo"
store = ""  # results folder; empty: LABKIT_RESULTS or ./results
baseline = ""  # recipe that the others are compared with; empty: the sweep's own

# %% [markdown]
# ## Recorded runs

# %%
from IPython.display import Markdown

from labkit.report import build_report, markdown_table, plots, summarize
from labkit.report.notebook import refuse_unknown_parameters, show
from labkit.report.summary import quality_group, speed_group
from labkit.results.frames import long_frame
from labkit.results.store import Store

refuse_unknown_parameters()
results = Store(store or None)
documents = [document for document in results.documents() if document.sweep == sweep]
asked = results.read_sweep(sweep)
chosen = baseline or (asked.baseline if asked else None)
Markdown(markdown_table(documents, baseline=chosen))

# %% [markdown]
# ## Speed
#
# Replay is the speed truth: every recipe says the same tokens.

# %%
summary = summarize(documents, baseline=chosen)
colours = plots.recipe_colours(line.recipe for line in summary.lines)
speed = speed_group(summary)
show(plots.stage_bars(long_frame(line.document for line in speed.ok)))

# %% [markdown]
# ## Size and memory

# %%
show(plots.size_bars(speed.wide, colours=colours))

# %% [markdown]
# ## Quality against speed
#
# Scores are automatic proxies; no listener was asked.

# %%
quality = quality_group(summary)
show(plots.quality_speed(quality.wide, long_frame(line.document for line in quality.ok), colours=colours))

# %% [markdown]
# ## The page
#
# One file with audio players for every text and recipe.

# %%
page = build_report(results, sweep=sweep, baseline=chosen)
print(page.resolve())
