"""A loop with Accelerate, its save_state() and load_state(); --lose leaves out what a resume should have restored."""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from samples import Samples
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--lose", default="")
    parser.add_argument("--forget-average", action="store_true", help="it is in no checkpoint")
    parser.add_argument("--no-shuffle", action="store_true")
    given = parser.parse_args()
    lose = given.lose.split(",")
    torch.set_num_threads(1)
    set_seed(1)
    accelerator = Accelerator(cpu=True)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    loader = torch.utils.data.DataLoader(Samples(), batch_size=8, shuffle=not given.no_shuffle)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
    if not given.forget_average:
        accelerator.register_for_checkpointing(average)
    step, data = 0, loader
    path = Path(given.out) / "state"
    if given.resume:
        if "random" in lose:
            for file in path.glob("random_states*"):
                file.rename(path / f"lost_{file.name}")
        accelerator.load_state(str(path))
        step = 3
        if "position" not in lose:
            data = accelerator.skip_first_batches(loader, 3)
    while step < 7:
        for inputs, labels in data:
            loss = nn.functional.cross_entropy(model(inputs), labels)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            average.update_parameters(accelerator.unwrap_model(model))
            step += 1
            if step == 3:
                accelerator.save_state(str(path))
            if step == 7:
                break
        data = loader
    accelerator.end_training()


main()
