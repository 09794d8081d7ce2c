"""Glicko-style rating system fitted online, one rating period at a time."""
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import grad, jit, lax, vmap

N_PLAYERS = 400
N_PERIODS = 40
Q = np.log(10.0) / 400.0
NEWTON_STEPS = 6
PRIOR_SD = 350.0
DRIFT = 25.0


def simulate_seasons(seed=11):
    rng = np.random.RandomState(seed)
    skill = rng.normal(1500.0, 200.0, size=N_PLAYERS)
    periods = []
    for _ in range(N_PERIODS):
        n_games = int(rng.randint(150, 900))
        a = rng.randint(0, N_PLAYERS, size=n_games)
        b = (a + rng.randint(1, N_PLAYERS, size=n_games)) % N_PLAYERS
        p = 1.0 / (1.0 + 10.0 ** (-(skill[a] - skill[b]) / 400.0))
        won = (rng.uniform(size=n_games) < p).astype(np.float32)
        skill = skill + rng.normal(0.0, 10.0, size=N_PLAYERS)
        periods.append((a.astype(np.int32), b.astype(np.int32), won))
    return periods


def game_log_lik(r_a, r_b, won):
    z = Q * (r_a - r_b)
    return won * z - jax.nn.softplus(z)


def neg_log_posterior(r, mean, rd, a, b, won):
    ll = vmap(game_log_lik)(r[a], r[b], won)
    return -jnp.sum(ll) + 0.5 * jnp.sum(((r - mean) / rd) ** 2)


@jit
def update_period(mean, rd, a, b, won):
    rd = jnp.minimum(jnp.sqrt(rd ** 2 + DRIFT ** 2), PRIOR_SD)

    e = jax.nn.sigmoid(Q * (mean[a] - mean[b]))
    info = Q ** 2 * e * (1.0 - e)
    precision = 1.0 / rd ** 2
    precision = precision.at[a].add(info).at[b].add(info)

    def body(_, r):
        return r - grad(neg_log_posterior)(r, mean, rd, a, b, won) / precision

    r = lax.fori_loop(0, NEWTON_STEPS, body, mean)
    total = -jnp.sum(vmap(game_log_lik)(mean[a], mean[b], won))
    correct = jnp.sum((e > 0.5) == (won > 0.5))
    return r, 1.0 / jnp.sqrt(precision), total, correct


def main():
    periods = simulate_seasons()
    mean = jnp.full((N_PLAYERS,), 1500.0)
    rd = jnp.full((N_PLAYERS,), PRIOR_SD)
    start = time.time()
    games_seen = 0
    for i, (a, b, won) in enumerate(periods):
        n = len(won)
        mean, rd, nll, correct = update_period(mean, rd, a, b, won)
        games_seen += n
        if i % 2 == 0:
            print("period %3d  log loss %.4f  accuracy %.3f  mean rd %.2f"
                  % (i, float(nll) / n, float(correct) / n, float(rd.mean())))
    order = np.argsort(-np.asarray(mean))[:10]
    for rank, p in enumerate(order):
        print("%2d. player %3d  %.1f +- %.1f" % (rank + 1, p, mean[p], rd[p]))
    print("%d games, %.1f s" % (games_seen, time.time() - start))


if __name__ == "__main__":
    main()
