# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny GPT with torch on a dataset of millrace, on the CPU.

    python train_gpt.py out/sample_text_document --vocab-size 1000
    torchrun --nproc-per-node 2 train_gpt.py out/sample_text_document --vocab-size 1000 --resume

Each line that it prints has the step, the loss, and a checksum of the tokens of the step. It writes a checkpoint
every ten steps. If the program is killed, `--resume` continues after the last checkpoint with the same tokens, on
any number of ranks that divides the batch.
"""
import argparse
import os
import pathlib
import zlib

import millrace
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

SEQ_LENGTH, GLOBAL_BATCH, WIDTH = 64, 8, 64


class Gpt(nn.Module):
    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, WIDTH)
        self.positions = nn.Embedding(SEQ_LENGTH, WIDTH)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(2))
        self.head = nn.Linear(WIDTH, vocab_size)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(SEQ_LENGTH), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x, src_mask=self.mask, is_causal=True)
        logits: torch.Tensor = self.head(x)
        return logits


def average(values: torch.Tensor, ranks: int) -> torch.Tensor:
    if ranks > 1:
        dist.all_reduce(values)
        values /= ranks
    return values


def checksum(tokens: torch.Tensor, ranks: int) -> int:
    """A checksum of the rows of all ranks."""
    rows = [tokens.contiguous()]
    if ranks > 1:
        rows = [torch.empty_like(rows[0]) for _ in range(ranks)]
        dist.all_gather(rows, tokens.contiguous())
    return zlib.crc32(torch.cat(rows).numpy().tobytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--vocab-size", type=int, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoint", type=pathlib.Path, default=pathlib.Path("checkpoint.pt"))
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    rank, ranks = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(1)  # sums in a fixed order, so that a resumed run has the same losses

    run = millrace.MegatronRun(data_path=[args.prefix], split="1", seq_length=SEQ_LENGTH,
                               train_samples=args.steps * GLOBAL_BATCH)
    loader = millrace.Loader(run, micro_batch_size=GLOBAL_BATCH // ranks, global_batch_size=GLOBAL_BATCH, rank=rank,
                             world_size=ranks, output="torch")
    model = Gpt(args.vocab_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    first = 0
    if args.resume:
        saved = torch.load(args.checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        loader.load_state_dict(saved["loader"])
        first = saved["step"]

    for step in range(first, args.steps):
        batch = next(loader)
        logits = model(batch["tokens"])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch["labels"].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for parameter in model.parameters():
            if parameter.grad is not None:
                average(parameter.grad, ranks)
        optimizer.step()
        mean, tokens = average(loss.detach(), ranks), checksum(batch["tokens"], ranks)
        if rank == 0:
            print(f"{step} {mean.item():.9f} {tokens:08x}", flush=True)
        if rank == 0 and (step + 1) % 10 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict(),
                     "step": step + 1}
            torch.save(state, args.checkpoint.with_suffix(".tmp"))
            os.replace(args.checkpoint.with_suffix(".tmp"), args.checkpoint)
    if ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
