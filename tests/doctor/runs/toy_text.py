"""A small corpus, the same for both frameworks: each token follows from the one before, with some noise."""

import numpy as np

SAMPLES, LENGTH, BATCH = 48, 10, 4


def corpus(words):
    random = np.random.default_rng(7)
    tokens = np.zeros((SAMPLES, LENGTH + 1), np.int64)
    tokens[:, 0] = random.integers(0, words, SAMPLES)
    for i in range(LENGTH):
        guess = (3 * tokens[:, i] + 1) % words
        noise = random.integers(0, words, SAMPLES)
        tokens[:, i + 1] = np.where(random.random(SAMPLES) < 0.8, guess, noise)
    return tokens


def order_of(epoch, seed):
    return np.random.default_rng([seed, epoch]).permutation(SAMPLES)


def batch(step, words, seed):
    """Tokens and labels of a step, from 0."""
    text = corpus(words)
    epoch, place = divmod(step * BATCH, SAMPLES)
    rows = text[order_of(epoch, seed)[place : place + BATCH]]
    tokens, labels = rows[:, :-1], rows[:, 1:]
    return tokens.copy(), labels.copy()


def save_batch(directory, step, tokens, labels):
    """In the layout of the accuracy guide."""
    path = f"{directory}/step_{step}/rank_0"
    import os

    os.makedirs(path, exist_ok=True)
    np.save(f"{path}/tokens.npy", tokens)
    np.save(f"{path}/labels.npy", labels)
