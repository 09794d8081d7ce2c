"""Half precision of BatchNorm, LSTM and targets, in JAX, TensorFlow and Keras 2.

The float32 twin passes the gate; the variant stays as close to it as rounding explains.

python3 -m tests.cli.precision_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import unittest

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
# Of all gradients: 8 and 11 bits, a few roundings on the way.
FARTHEST = {"bfloat16": 0.1, "float16": 0.02}
AWAY = re.compile(
    r"^(?P<name>\S+precision=(?P<precision>b?float16)\S*): its float32 twin is the "
    r"same; loss (?P<loss>\S+) and gradients (?P<gradients>\S+) away from it$",
    re.MULTILINE,
)


class Precision(unittest.TestCase):
    def prove(self, environment: str, contender: str, recurrent: str) -> None:
        support.need(environment)
        for workload in (NORMED, recurrent):
            place = support.Place([environment])
            self.addCleanup(place.close)
            place.write("mlp.ir", workload)
            both = f'{contender}, precision = ["bfloat16", "float16"]'
            path = place.write("half.toml", support.recipe([both]))
            outcome = place.run("parity", path)
            self.assertEqual(outcome.code, 0, f"{outcome.out}\n{outcome.err}")
            found = list(AWAY.finditer(outcome.out))
            self.assertEqual(len(found), 2, outcome.out)
            for row in found:
                with self.subTest(row["name"]):
                    gradients = float(row["gradients"])
                    self.assertGreater(gradients, 1e-5)  # it does round
                    self.assertLess(gradients, FARTHEST[row["precision"]])

    def test_jax(self) -> None:
        self.prove("jax", 'framework = "jax"', RECURRENT)

    def test_tensorflow(self) -> None:
        self.prove("tensorflow", 'framework = "tensorflow"', RECURRENT)

    def test_keras2(self) -> None:
        self.prove("keras2", 'framework = "keras2"', GIVEN)


if __name__ == "__main__":
    support.main()
