"""Which layers of the GPT to keep wide: recipes of mixed precision under a budget, proposed, then measured.

`search` asks `labkit.sensitivity` what each layer loses in 8 and in 4 bits, works out every mix that no other one beats
in size, speed and fidelity (`front`), takes the best within the budget, makes it and measures it beside what was
predicted. It writes recipes and no result: what a recipe is worth is measured by `labkit run`.
"""

from labkit.search.budget import Budget, parse_budget
from labkit.search.chart import front_chart
from labkit.search.files import write_recipes
from labkit.search.front import Point, front
from labkit.search.mixing import Scheme
from labkit.search.searching import Proposal, Search, search, words_of

__all__ = [
    "Budget",
    "Point",
    "Proposal",
    "Scheme",
    "Search",
    "front",
    "front_chart",
    "parse_budget",
    "search",
    "words_of",
    "write_recipes",
]
