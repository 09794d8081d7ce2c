"""Half precision in JAX, TensorFlow and Keras 2: norms, LSTM, long sums, targets.

The float32 twin passes the gate; the variant stays as close to it as rounding explains.
Every day one workload by JAX and another by TensorFlow, in one of the two precisions.

python3 -m tests.cli.precision_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import re
import unittest
from typing import Any

from tests.cli import support

NORMED = """
workload normed(x: f32[N,2,6,6], y: i32[N]) {
  c1 = conv2d(x; weight=c1.weight[8,2,3,3]) pad=1,1,1,1
  n1 = batch_norm(c1; weight=n1.weight[8], bias=n1.bias[8], \
mean=n1.running_mean[8], var=n1.running_var[8]) eps=1e-5 momentum=0.1
  r1 = relu(n1)
  p1 = max_pool2d(r1) kernel=3,3 stride=2,2 pad=1,1,1,1
  d1 = dropout(p1) rate=0.5
  g1 = global_avg_pool2d(d1)
  logits = linear(g1; weight=fc.weight[4,8], bias=fc.bias[4])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
RECURRENT = """
workload recurrent(x: f32[N,12,5]) {
  own = lstm(x; weight_ih=a.weight_ih_l0[32,5], weight_hh=a.weight_hh_l0[32,8], \
bias=a.bias_ih_l0[32])
  bare = lstm(own; weight_ih=b.weight_ih_l0[32,8], weight_hh=b.weight_hh_l0[32,8])
  guess = linear(bare; weight=head.weight[5,8], bias=head.bias[5])
  goal = tanh(x)
  loss = mse(guess, goal)
}
"""
# Keras takes targets from the data. The sum of an input and a layer: of two dtypes.
GIVEN = """
workload given(x: f32[N,12,5], y: f32[N,12,5]) {
  own = lstm(x; weight_ih=a.weight_ih_l0[20,5], weight_hh=a.weight_hh_l0[20,5], \
bias=a.bias_ih_l0[20])
  both = add(x, own)
  guess = linear(both; weight=head.weight[5,5], bias=head.bias[5])
  loss = mse(guess, y)
}
"""
# Gradients of biases and of an embedding are sums of thousands of numbers of one sign, which half precision
# would stop adding to at 256 or 2048 of them.
SUMMED = """
workload summed(x: f32[N,200,4], words: i32[N,200]) {
  placed = position_embedding(x; weight=place.weight[200,4])
  normed = layer_norm(placed; weight=norm.weight[4], bias=norm.bias[4]) eps=1e-5
  h = linear(normed; weight=fc.weight[4,4], bias=fc.bias[4])
  rows = embedding(words; weight=words.weight[2,4])
  guess = add(h, rows)
  goal = sigmoid(x)
  loss = mse(guess, goal)
}
"""
POOLED = """
workload pooled(x: f32[N,2,6,6]) {
  c = conv2d(x; weight=c.weight[8,2,3,3], bias=c.bias[8]) pad=1,1,1,1
  n = lrn(c) size=5 alpha=0.0001 beta=0.75 k=2
  all = avg_pool2d(n) kernel=6,6 stride=6,6
  gate = sigmoid(all)
  gated = mul(n, gate)
  g = global_avg_pool2d(gated)
  guess = softmax(g) axis=1
  p = global_avg_pool2d(x)
  t = linear(p; weight=t.weight[8,2])
  goal = sigmoid(t)
  loss = mse(guess, goal)
}
"""
# Of all gradients: 8 and 11 bits, a few roundings on the way.
FARTHEST = {"bfloat16": 0.1, "float16": 0.02}
FARTHEST_SUM = {"bfloat16": 0.02, "float16": 0.01}  # a few roundings, averaged out
HALVES = ("bfloat16", "float16")
WORKLOADS = (
    (NORMED, FARTHEST),
    (RECURRENT, FARTHEST),
    (SUMMED, FARTHEST_SUM),
    (POOLED, FARTHEST_SUM),
)
KERAS_WORKLOADS = ((NORMED, FARTHEST), (GIVEN, FARTHEST))
AWAY = re.compile(
    r"^(?P<name>\S+precision=(?P<precision>b?float16)\S*): its float32 counterpart is "
    r"equal; from it the loss differs by (?P<loss>\S+), the gradients by (?P<gradients>\S+)$",
    re.MULTILINE,
)


class Precision(unittest.TestCase):
    def prove(
        self,
        environment: str,
        contender: str,
        workloads: tuple[Any, ...],
        everyday: int,
    ) -> None:
        place = support.place_for(self, environment, warm=True)
        for number, (workload, farthest) in enumerate(workloads):
            if not support.FULL and number != everyday:
                continue
            halves = HALVES if support.FULL else (HALVES[number // 2],)
            place.write("mlp.ir", workload)
            half = f"{contender}, precision = {json.dumps(halves)}"
            path = place.write("half.toml", support.recipe([half]))
            outcome = place.run("parity", path)
            self.assertEqual(outcome.code, 0, f"{outcome.out}\n{outcome.err}")
            found = list(AWAY.finditer(outcome.out))
            precisions = [row["precision"] for row in found]
            self.assertEqual(sorted(precisions), sorted(halves), outcome.out)
            for row in found:
                with self.subTest(row["name"]):
                    gradients = float(row["gradients"])
                    self.assertGreater(gradients, 1e-5)  # it does round
                    self.assertLess(gradients, farthest[row["precision"]])

    def test_jax(self) -> None:
        self.prove("jax", 'framework = "jax"', WORKLOADS, 0)

    def test_tensorflow(self) -> None:
        self.prove("tensorflow", 'framework = "tensorflow"', WORKLOADS, 1)

    @support.full_tier
    def test_keras2(self) -> None:
        self.prove("keras2", 'framework = "keras2"', KERAS_WORKLOADS, 0)


if __name__ == "__main__":
    support.main()
