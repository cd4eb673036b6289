# SPDX-License-Identifier: Apache-2.0
"""Trains a tiny language model with JAX on a dataset of millrace.

    python train_jax.py out/sample_text_document --vocab-size 1000

Each line that it prints has the step, the loss, and a checksum of the tokens of the step: those that train_gpt.py
prints for the same dataset.
"""
import argparse
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import millrace

SEQ_LENGTH, GLOBAL_BATCH, WIDTH = 64, 8, 64

Parameters = dict[str, jax.Array]


def loss_of(parameters: Parameters, tokens: jax.Array, labels: jax.Array) -> jax.Array:
    """A model that mixes each token with the mean of those before it."""
    x = parameters["embedding"][tokens]
    before = jnp.cumsum(x, axis=1) / jnp.arange(1, SEQ_LENGTH + 1)[None, :, None]
    hidden = jax.nn.gelu(jnp.concatenate([x, before], axis=-1) @ parameters["inner"])
    scores = jax.nn.log_softmax(hidden @ parameters["head"])
    return -jnp.take_along_axis(scores, labels[..., None], axis=-1).mean()


@jax.jit
def train_step(parameters: Parameters, tokens: jax.Array, labels: jax.Array) -> tuple[Parameters, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(parameters, tokens, labels)
    return {name: value - 0.5 * gradients[name] for name, value in parameters.items()}, loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("--vocab-size", type=int, required=True)
    parser.add_argument("--steps", type=int, default=60)
    args = parser.parse_args()

    shapes = {"embedding": (args.vocab_size, WIDTH), "inner": (2 * WIDTH, 4 * WIDTH),
              "head": (4 * WIDTH, args.vocab_size)}
    keys = jax.random.split(jax.random.key(0), len(shapes))
    parameters = {name: jax.random.normal(key, shape) * (1.0 if name == "embedding" else shape[0] ** -0.5)
                  for key, (name, shape) in zip(keys, shapes.items())}
    run = millrace.MegatronRun(data_path=[args.prefix], split="1", seq_length=SEQ_LENGTH,
                               train_samples=args.steps * GLOBAL_BATCH)
    # As in Megatron, a run ends with a whole epoch, so it may have more samples than train_samples.
    for step, batch in zip(range(args.steps), millrace.Loader(run, micro_batch_size=GLOBAL_BATCH, dtype="int32")):
        # jnp.array copies: JAX may otherwise keep using the memory of the batch after its end.
        arrays: dict[str, Any] = {name: jnp.array(batch[name]) for name in ("tokens", "labels")}
        parameters, loss = train_step(parameters, **arrays)
        print(f"{step} {loss.item():.9f} {zlib.crc32(batch['tokens'].astype('int64').tobytes()):08x}", flush=True)


if __name__ == "__main__":
    main()
