"""Networks that no recipe ships pass the gate in every framework, as Bakeoff emits them.

python3 -m tests.attacks.networks_test build/dev/bakeoff

Layers used twice, branches that meet again, gates, residuals, groups and dilations.
Every day in PyTorch, with BAKEOFF_FULL_TESTS=1 in all frameworks.
"""

from __future__ import annotations

import sys
import unittest

from tests.attacks.parity_test import Ground, verdicts
from tests.attacks.tables import FRAMEWORKS
from tests.cli import support

NETWORKS = {
    "layer_twice": """
workload layer_twice(x: f32[N,12], y: i32[N]) {
  h1 = linear(x; weight=in.weight[16,12], bias=in.bias[16])
  h2 = relu(h1)
  h3 = linear(h2; weight=mid.weight[16,16], bias=mid.bias[16])
  h4 = relu(h3)
  h5 = linear(h4; weight=mid.weight[16,16], bias=mid.bias[16])
  h6 = tanh(h5)
  logits = linear(h6; weight=out.weight[4,16], bias=out.bias[4])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "branches": """
workload branches(x: f32[N,3,8,8], y: i32[N]) {
  a1 = conv2d(x; weight=a.weight[4,3,1,1], bias=a.bias[4])
  a2 = relu(a1)
  b1 = conv2d(x; weight=b.weight[4,3,3,3], bias=b.bias[4]) pad=1,1,1,1
  b2 = relu(b1)
  c1 = avg_pool2d(x) kernel=3,3 stride=1,1 pad=1,1,1,1
  c2 = conv2d(c1; weight=c.weight[2,3,1,1], bias=c.bias[2])
  h1 = concat(a2, b2, c2) axis=1
  h2 = batch_norm(h1; weight=bn.weight[10], bias=bn.bias[10], \
mean=bn.running_mean[10], var=bn.running_var[10])
  h3 = relu(h2)
  h4 = global_avg_pool2d(h3)
  logits = linear(h4; weight=out.weight[5,10], bias=out.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "norm_twice": """
workload norm_twice(x: f32[N,10], y: i32[N]) {
  h1 = layer_norm(x; weight=norm.weight[10], bias=norm.bias[10])
  h2 = linear(h1; weight=up.weight[10,10], bias=up.bias[10])
  h3 = sigmoid(h2)
  h4 = mul(h1, h3)
  h5 = add(x, h4)
  h6 = layer_norm(h5; weight=norm.weight[10], bias=norm.bias[10])
  logits = linear(h6; weight=out.weight[3,10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "conv_twice_residual": """
workload conv_twice_residual(x: f32[N,2,9,9], y: i32[N]) {
  h1 = conv2d(x; weight=stem.weight[6,2,3,3], bias=stem.bias[6]) stride=2,2 pad=1,1,1,1
  h2 = relu(h1)
  h3 = conv2d(h2; weight=body.weight[6,6,3,3], bias=body.bias[6]) pad=1,1,1,1
  h4 = relu(h3)
  h5 = add(h2, h4)
  h6 = conv2d(h5; weight=body.weight[6,6,3,3], bias=body.bias[6]) pad=1,1,1,1
  h7 = relu(h6)
  h8 = add(h5, h7)
  h9 = flatten(h8)
  logits = linear(h9; weight=out.weight[4,150], bias=out.bias[4])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "groups_and_dilation": """
workload groups_and_dilation(x: f32[N,4,10,10], y: i32[N]) {
  h1 = conv2d(x; weight=g.weight[8,2,3,3], bias=g.bias[8]) groups=2 pad=2,2,2,2 dilation=2,2
  h2 = gelu(h1) form=tanh
  h3 = conv2d(h2; weight=d.weight[8,1,3,3]) groups=8 pad=0,1,0,1
  h4 = relu(h3)
  h5 = max_pool2d(h4) kernel=2,3 stride=2,2
  h6 = flatten(h5)
  logits = linear(h6; weight=out.weight[3,128], bias=out.bias[3])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "two_lstms": """
workload two_lstms(x: i32[N,5], y: i32[N,5]) {
  e = embedding(x; weight=emb.weight[20,8])
  a = lstm(e; weight_ih=a.weight_ih[32,8], weight_hh=a.weight_hh[32,8], bias=a.bias[32])
  b = lstm(a; weight_ih=b.weight_ih[32,8], weight_hh=b.weight_hh[32,8])
  r = add(a, b)
  logits = linear(r; weight=emb.weight[20,8], bias=out.bias[20])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
    "dropout_in_branches": """
workload dropout_in_branches(x: f32[N,14], y: f32[N,2]) {
  a1 = linear(x; weight=a.weight[12,14], bias=a.bias[12])
  a2 = relu(a1)
  a3 = dropout(a2) rate=0.25
  b1 = linear(x; weight=b.weight[12,14], bias=b.bias[12])
  b2 = sigmoid(b1)
  b3 = dropout(b2) rate=0.5
  h = mul(a3, b3)
  out = linear(h; weight=out.weight[2,12], bias=out.bias[2])
  loss = mse(out, y) reduction=mean
}
""",
    "attention_of_itself": """
workload attention_of_itself(x: f32[N,5,12], y: i32[N]) {
  p = linear(x; weight=p.weight[12,12], bias=p.bias[12])
  h = reshape(p) shape=N,5,3,4
  a = attention(h, h, h) causal=true
  f = reshape(a) shape=N,5,12
  s = add(f, x)
  n = layer_norm(s; weight=n.weight[5,12], bias=n.bias[5,12]) dims=2
  g = reshape(n) shape=N,60
  logits = linear(g; weight=out.weight[4,60], bias=out.bias[4])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
""",
}
OPTIMIZERS = (
    'kind = "adam"\nlr = 1e-3\neps = 1e-6\n',
    'kind = "sgd"\nlr = 0.02\nmomentum = 0.9\n',
    'kind = "adamw"\nlr = 1e-3\neps = 1e-6\nweight_decay = 0.1\n',
    'kind = "rmsprop"\nlr = 1e-3\neps = 1e-5\n',
)


@support.full_tier
class Networks(unittest.TestCase):
    def prove(self, *frameworks: str) -> None:
        environments = sorted({FRAMEWORKS[name][0] for name in frameworks})
        support.need(*environments)
        ground = Ground(environments)
        self.addCleanup(ground.place.close)
        for number, (name, text) in enumerate(NETWORKS.items()):
            ground.place.write(f"{name}.ir", text)
            recipe = support.recipe(
                [FRAMEWORKS[framework][1] for framework in frameworks],
                top=f'workload = "{name}.ir"\nbatch = 20\nalpha = 0.5\n',
                data="samples = 103\n",
                optimizer=OPTIMIZERS[number % len(OPTIMIZERS)],
                race="parity_steps = 10\nstage_seconds = 300\nthreads = 1\n",
            )
            path = ground.place.write(f"{name}.toml", recipe)
            done = ground.place.run("parity", path, timeout=3000)
            words = done.out + done.err
            print(f"{name}: exit code {done.code}", file=sys.stderr, flush=True)
            with self.subTest(name):
                self.assertEqual(done.code, 0, words)
                self.assertEqual(len(verdicts(done.out)), len(frameworks), words)

    def test_in_torch(self) -> None:
        self.prove("torch")

    @support.full_tier
    def test_in_the_other_frameworks(self) -> None:
        for framework in FRAMEWORKS:
            if framework != "torch":
                with self.subTest(framework):
                    self.prove(framework)


if __name__ == "__main__":
    support.main()
