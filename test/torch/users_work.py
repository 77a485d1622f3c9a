# SPDX-License-Identifier: Apache-2.0
"""What users run, on CPU tensors, behind a first call of CUDA: users_work.py compile|lightning|
trainer|raises|exits. All that is printed is the same each time, but for seconds."""

import sys
import tempfile
import threading

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCHES, EPOCHS, BATCH = 6, 2, 4


class Numbers(Dataset):
    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, i):
        return torch.arange(8.0) * (i + 1) / 10, torch.tensor([float(i % 3)])


def net():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))


def compiled():
    """Graphs and breaks as torch.compile counts them."""
    from torch import _dynamo

    def broken(x):
        x = x.sin() + 1
        print("a break")
        return x.cos() * 2

    def whole(x):
        return (x @ x.t()).relu().sum(dim=1)
    for function in (broken, whole, net()):
        _dynamo.reset()
        told = _dynamo.explain(function)(torch.ones(8, 8))
        print("explained", told.graph_count, told.graph_break_count, told.op_count)
        for backend in ("eager", "aot_eager"):
            _dynamo.reset()
            _dynamo.utils.counters.clear()
            run = torch.compile(function, backend=backend)
            for size in (8, 8, 4):
                result = run(torch.ones(size, 8))
            result.sum().backward() if result.requires_grad else None
            counters = _dynamo.utils.counters
            print(backend, float(result.sum()), dict(counters["stats"]),
                  sum(counters["graph_break"].values()))


def lightning():
    import lightning as pl

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = net()

        def training_step(self, batch, index):
            loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
            print("step", index, loss.item())
            return loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=0.01)

    trainer = pl.Trainer(max_epochs=EPOCHS, accelerator="cpu", logger=False,
                         enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Model(), DataLoader(Numbers(), batch_size=BATCH))
    print(trainer.callback_metrics, trainer.global_step)


class Sentences(Dataset):
    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, i):
        words = torch.arange(12) * (i + 3) % 40
        return {"input_ids": words, "attention_mask": torch.ones(12), "labels": torch.tensor(i % 2)}


def trainer():
    from transformers import (BertConfig, BertForSequenceClassification, Trainer,
                              TrainingArguments)
    model = BertForSequenceClassification(BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=16))
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder, num_train_epochs=EPOCHS, per_device_train_batch_size=BATCH, logging_steps=1,
            use_cpu=True, disable_tqdm=True, report_to=[], save_strategy="no")
        done = Trainer(model, arguments, train_dataset=Sentences()).train()
    print(done.global_step, done.training_loss)


def fails(how):
    net()(torch.ones(2, 8)).sum().backward()
    if how == "exits":
        sys.exit(3)
    torch.ones(2) @ torch.ones(3)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.zeros(1, device="cuda")
    threading.Event().wait(1.5)  # gpuprof attaches a moment after the first call
    what = sys.argv[1]
    {"compile": compiled, "lightning": lightning, "trainer": trainer}.get(
        what, lambda: fails(what))()


if __name__ == "__main__":
    main()
