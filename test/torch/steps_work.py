# SPDX-License-Identifier: Apache-2.0
"""steps_work.py KIND: a training whose steps check_steps.py knows; it prints how many updates there
were, and how many times a batch was fetched."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = sys.argv[1]
EPOCHS, BATCHES, ACCUMULATED = 2, 12, 4
counts = {"updates": 0, "fetches": 0}


class Counted(DataLoader):
    def __iter__(self):
        iterator = super().__iter__()
        while True:
            counts["fetches"] += 1  # the last one of an epoch, too
            try:
                yield next(iterator)
            except StopIteration:
                return


def count(*_):
    counts["updates"] += 1


def fuse(model):
    """An optimizer for each parameter, which steps in the backward pass."""
    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()
    optimizers = {p: torch.optim.AdamW([p], lr=0.01) for p in model.parameters()}
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)


def train(model, optimizer, data, profiler):
    for inputs, targets in (batch for _ in range(EPOCHS) for batch in data):
        inputs, targets = inputs.to("cuda"), targets.to("cuda")

        def closure():
            optimizer.zero_grad()
            loss = ((model(inputs) - targets) ** 2).mean()
            loss.backward()
            return loss
        if KIND == "closure":
            optimizer.step(closure)
        elif KIND == "fused":
            ((model(inputs) - targets) ** 2).mean().backward()
        else:
            closure()
            if KIND != "accumulated" or counts["fetches"] % ACCUMULATED == 0:
                optimizer.step()
        if profiler:
            profiler.step()


def train_scaled(model, optimizer, data):
    """Each part of a step in a label."""
    part, scaler = torch.profiler.record_function, torch.amp.GradScaler("cuda")
    for inputs, targets in (batch for _ in range(EPOCHS) for batch in data):
        with part("forward"), torch.autocast("cuda", dtype=torch.float16):
            loss = ((model(inputs.to("cuda")) - targets.to("cuda")) ** 2).mean()
        with part("scale"):
            loss_scaled = scaler.scale(loss)
        loss_scaled.backward()
        with part("unscale"):
            scaler.unscale_(optimizer)
        with part("clip"):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with part("step"):
            scaler.step(optimizer)
        with part("update"):
            scaler.update()
        optimizer.zero_grad()
        with part("item"):
            loss.item()


def main():
    torch.zeros(1, device="cuda")
    time.sleep(2)  # operators are recorded by then
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to("cuda")
    data = Counted(TensorDataset(torch.randn(8 * BATCHES, 32), torch.randn(8 * BATCHES, 8)), 8)
    made = torch.optim.LBFGS if KIND == "closure" else torch.optim.SGD
    optimizer = made(model.parameters(), lr=0.01)
    optimizer.register_step_post_hook(count)
    if KIND == "fused":
        fuse(model)
    if KIND == "scaled":
        train_scaled(model, optimizer, data)
    elif KIND != "profiler":
        train(model, optimizer, data, None)
    else:
        schedule = torch.profiler.schedule(wait=2, warmup=2, active=5)
        with torch.profiler.profile(schedule=schedule) as profiler:
            train(model, optimizer, data, profiler)
    print(counts["updates"], counts["fetches"])


main()
