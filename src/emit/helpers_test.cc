#include "emit/helpers.h"

#include <gtest/gtest.h>

namespace bakeoff::emit {
namespace {

const std::vector<embedded::File> kFile = {{"helpers.py", R"("""What scripts call."""

import jax


def half(x):
    return x.astype(jax.bfloat16)


# Why it is so.
def conv(x, kernel, bias=None, *, stride=1, groups=1, eps=1e-5):
    y = jax.conv(
        x,
        kernel,
        groups=groups,
    )
    return y if bias is None else half(y + bias + eps)


def mask(x, last=None, *, causal=False):
    """What conv (x) is for."""
    if causal:
        x = tri(x)

    if last is not None:
        x = x[last]
    return x


def tri(x):
    return x.tri()


def lstm(x, bias=0.0, reverse=False):
    y = wide(add, scan(x + bias), bias)
    return y[:: -1 if reverse else 1]


def norm(x, scale=1.0, shift=0.0, *, eps=1e-5):
    return x * scale + shift + eps


def lstm_mixed(x):
    return lstm_step(x)
)"}};

std::string used_by(const std::string& script, const std::set<std::string>& variants = {}) {
  return Helpers(kFile, Helpers::Copy::kAsCalled).used_by(script, variants);
}

TEST(Helpers, TakesWhatTheScriptNamesAndWhatThatNames) {
  EXPECT_EQ(used_by("x = mask(x, causal=True)"), R"(def mask(x, *, causal=False):
    """What conv (x) is for."""
    if causal:
        x = tri(x)

    return x


def tri(x):
    return x.tri()


)");
  EXPECT_EQ(used_by("x = jax.conv(x)  # conv(x)\ny = f(\"conv(x)\", mask=x)"), "");
}

TEST(Helpers, LeaveOutWhatNoCallGives) {
  EXPECT_EQ(used_by("conv(x, k, stride=2)\n"), R"(def conv(x, kernel, *, stride=1):
    return jax.conv(
        x,
        kernel,
    )


)");
  EXPECT_EQ(used_by("lstm(x)"), "def lstm(x):\n    return scan(x)\n\n\n");
}

TEST(Helpers, LoseTheDefaultsThatEveryCallOverrides) {
  EXPECT_EQ(used_by("conv(x, k, b)\nin_float32(conv, x, k,\n    b,\n)"),
            R"(def conv(x, kernel, bias, *, eps=1e-5):
    y = jax.conv(
        x,
        kernel,
    )
    return y + bias + eps


)");
  EXPECT_EQ(used_by("conv(x, k, b, groups=2)\nconv(x, k)"),
            R"(def conv(x, kernel, bias=None, *, groups=1, eps=1e-5):
    y = jax.conv(
        x,
        kernel,
        groups=groups,
    )
    return y if bias is None else y + bias + eps


)");
  EXPECT_EQ(used_by("mask(x, l)"), R"(def mask(x, last):
    """What conv (x) is for."""

    return x[last]


)");
}

TEST(Helpers, HaveNoDefaultBeforeAParameterWithout) {
  EXPECT_EQ(used_by("norm(x, shift=(a == b), eps=1)\nnorm(x, \"s\", t, eps=1)"),
            R"(def norm(x, scale=1.0, shift=0.0, *, eps):
    return x * scale + shift + eps


)");
}

TEST(Helpers, HaveVariants) {
  EXPECT_EQ(used_by("lstm(x)", {"mixed"}), "def lstm(x):\n    return lstm_step(x)\n\n\n");
  EXPECT_NE(used_by("conv(x, k, b)", {"mixed"}).find("return half(y + bias + eps)"), std::string::npos);
  EXPECT_EQ(used_by("conv(x, k, b)", {"mixed"}).find("def half(x)"), 0);
  EXPECT_TRUE(Helpers(kFile).names().contains("lstm_mixed"));
}

}  // namespace
}  // namespace bakeoff::emit
