"""Matrices decay, layers' matrices move by Muon, and a saved optimizer goes on as if it had not stopped."""

from __future__ import annotations

import copy

import torch
from torch import nn

from labkit.training.optimizer import StageOptimizer


class Layered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8)])
        self.embedding = nn.Embedding(3, 4)
        self.head = nn.Linear(8, 2)


def fresh(*, muon: bool, weight_decay: float = 0.0) -> tuple[nn.ModuleDict, StageOptimizer]:
    torch.manual_seed(0)
    modules = nn.ModuleDict({"m": Layered()})
    return modules, StageOptimizer(modules, betas=(0.9, 0.95), weight_decay=weight_decay, muon=muon)


def push(modules: nn.ModuleDict, seed: int) -> None:
    """Gradients whose directions differ a thousandfold in size."""
    torch.manual_seed(seed)
    for parameter in modules.parameters():
        parameter.grad = torch.randn_like(parameter) * torch.logspace(-3, 0, parameter.shape[-1])


def moved(muon: bool) -> dict[str, torch.Tensor]:
    modules, optimizer = fresh(muon=muon)
    before = copy.deepcopy(modules.state_dict())
    push(modules, 1)
    optimizer.step(1e-2)
    return {name: value - before[name] for name, value in modules.state_dict().items()}


def test_only_matrices_decay() -> None:
    for muon in (False, True):
        modules, optimizer = fresh(muon=muon, weight_decay=0.1)
        before = copy.deepcopy(modules.state_dict())
        for parameter in modules.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step(0.5)
        shrunk = {
            name for name, value in modules.state_dict().items() if not torch.equal(value, before[name])
        }
        assert shrunk == {"m.layers.0.weight", "m.head.weight"}
        torch.testing.assert_close(modules.state_dict()["m.head.weight"], before["m.head.weight"] * 0.95)


def test_muon_moves_a_layers_matrix_alike_in_all_directions_and_nothing_else() -> None:
    plain, with_muon = moved(muon=False), moved(muon=True)
    spread = torch.linalg.svdvals(with_muon["m.layers.0.weight"])
    assert spread.max() < 4 * spread.min()  # of a gradient whose directions differ a thousandfold
    assert torch.linalg.svdvals(plain["m.layers.0.weight"]).max() > 10 * spread.min()
    assert all(torch.equal(plain[name], with_muon[name]) for name in plain if name != "m.layers.0.weight")


def test_a_saved_optimizer_goes_on_as_if_it_had_not_stopped() -> None:
    modules, optimizer = fresh(muon=True)
    other, resumed = fresh(muon=True)
    push(modules, 1)
    optimizer.step(1e-2)
    other.load_state_dict(modules.state_dict())
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for seed in (2, 3):
        for each, stepper in ((modules, optimizer), (other, resumed)):
            push(each, seed)
            stepper.step(1e-2)
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in modules.state_dict().items())
