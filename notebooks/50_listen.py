# %% [markdown]
# # Listen, blind
#
# Metrics are proxies. Whether a faster recipe still sounds right is for ears to say, and ears are swayed by names: so
# here nobody sees which clip is whose. `labkit listen page` makes the same test as a page that needs no notebook.

# %% tags=["parameters"]
runs = ["torch-fp32", "ort-int8-dynamic"]  # recipes or run ids; the first is what pairs are held against
kind = "ab"  # ab: which of two is better; mos: how good is each clip
rater = "listener 1"  # your name: votes are kept under it, and the test goes on where you stopped
voice = "nano"
corpus = "nano-eval"
texts = 8
seed = 0
store = ""  # results folder; empty: the lab's own

# %% [markdown]
# ## The clips
#
# Runs that kept their audio are taken from the results store; a recipe without one speaks now.

# %%
from IPython.display import display

import labkit
from labkit.listening import audible, listen, listeners, make_test, opinions
from labkit.report.notebook import refuse_unknown_parameters
from labkit.results.store import Store

refuse_unknown_parameters()
results, recipes = Store(store or None), labkit.default_recipes()
for name in [name for name in runs if name in recipes and name not in audible(results)]:
    spec = labkit.RunSpec(recipe=recipes[name], voice=voice, corpus=corpus, texts=texts, repeats=1, quality=False,
                          keep_audio=True)  # fmt: skip
    labkit.run(spec, store=results.folder, progress=print)

# %% [markdown]
# ## The test
#
# Every text once for each recipe, in an order of your own. A few trials test you: a clip muffled at 3.5 kHz, and one
# that comes twice. All are played at one level, for the louder of two clips always seems the better one.

# %%
test = make_test(results, runs, kind=kind, seed=seed, texts=texts)
print(f"test {test.id}: {len(test.trials)} trials")

# %% [markdown]
# ## Your turn
#
# Use headphones. Play, then press a button, or type its number into the field. Each vote is kept as it is cast.

# %%
display(listen(results, test, rater))

# %% [markdown]
# ## What listeners thought
#
# The interval is for other listeners *and* other texts, so it needs at least two of each. `human_mos` runs from 1 to 5;
# `human_ab` from -1 (all prefer the base) over 0 (no preference) to 1. Run this cell again after listening.

# %%
display(opinions(results, test.id).style.hide().format(precision=2))

# %% [markdown]
# ## How far each listener can be trusted
#
# Shares: of muffled clips found worse than the plain one, of clips heard twice rated alike, of equal pairs called the
# same. Nobody is left out in silence: pass `leave_out=["name"]` to `opinions` to do without someone.

# %%
display(listeners(results, test.id).style.hide().format(precision=2))
