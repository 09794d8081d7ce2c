#include "emit/code_writer.h"

#include <gtest/gtest.h>

#include "emit/losses.h"
#include "emit/namer.h"

namespace bakeoff::emit {
namespace {

TEST(CodeWriter, IndentsAndSubstitutes) {
  CodeWriter out;
  out.print("def $f$(x):\n", {{"f", "forward"}});
  {
    const auto body = out.indent();
    out.print("y = x\n\nreturn y  # costs 1$$\n");
  }
  EXPECT_EQ(out.text(), "def forward(x):\n    y = x\n\n    return y  # costs 1$\n");
}

TEST(CodeWriterDeathTest, UnknownNameAborts) {
  CodeWriter out;
  EXPECT_DEATH(out.print("$missing$\n"), "no value for '\\$missing'");
}

TEST(CodeWriter, CallWrapsAsTheFormatterDoes) {
  CodeWriter out;
  out.call("f", {"a", "b"});
  out.call("function", {std::string(40, 'a'), std::string(40, 'b')});
  out.call("function", {std::string(60, 'a'), std::string(40, 'b')}, "[0]");
  EXPECT_EQ(out.text(), "f(a, b)\nfunction(\n    " + std::string(40, 'a') + ", " + std::string(40, 'b') +
                            "\n)\nfunction(\n    " + std::string(60, 'a') + ",\n    " + std::string(40, 'b') +
                            ",\n)[0]\n");
}

// With a comma behind it, as behind a call's last argument, it would be a tuple.
TEST(CodeWriter, ALongExpressionIsBrokenAtItsOperator) {
  const std::string a(50, 'a'), b = "f(" + std::string(40, 'b') + " + 1)";
  CodeWriter out;
  out.call("x = ", {a + " @ " + b});
  out.call("x = ", {a + a});
  EXPECT_EQ(out.text(), "x = (\n    " + a + "\n    @ " + b + "\n)\nx = (\n    " + a + a + "\n)\n");
}

TEST(PythonReal, ReadsAsAPersonWouldWriteIt) {
  EXPECT_EQ(python_real(1e-4), "1e-4");
  EXPECT_EQ(python_real(1e-7), "1e-7");
  EXPECT_EQ(python_real(0.9), "0.9");
  EXPECT_EQ(python_real(0.001), "0.001");
  EXPECT_EQ(python_real(0.00025), "2.5e-4");
  EXPECT_EQ(python_real(1), "1.0");
  EXPECT_EQ(python_real(255), "255.0");
  EXPECT_EQ(python_real(1e-12), "1e-12");
}

TEST(Names, BecomeIdentifiers) {
  EXPECT_EQ(camel_case("mnist_cnn"), "MnistCnn");
  EXPECT_EQ(identifier("block1.conv"), "block1_conv");
  EXPECT_EQ(identifier("0.weight"), "layer_0_weight");  // of a Sequential
  EXPECT_EQ(identifier("_conv"), "_conv");
  EXPECT_EQ(public_identifier("_conv"), "conv");
  EXPECT_EQ(public_identifier("__0"), "layer_0");
  EXPECT_EQ(public_identifier("_"), "layer_");
  EXPECT_EQ(layer_of("block1.conv.weight"), "block1.conv");
  Namer namer({"model"});
  EXPECT_EQ(namer.name("a", "model"), "model_2");
  EXPECT_EQ(namer.name("b", "lambda"), "lambda_2");
  EXPECT_EQ(namer.name("c", "x.y"), "x_y");
  EXPECT_EQ(namer.name("d", "x_y"), "x_y_2");
  EXPECT_EQ(namer.name("c", "anything"), "x_y");
}

TEST(CodeWriter, GivesBackWhatTheLastLineComputes) {
  const auto after = [](const std::string& line, bool call = false) {
    CodeWriter out;
    if (call)
      out.call(line, {"a"});
    else
      out.line(line);
    out.give_back("x");
    return out.text();
  };
  EXPECT_EQ(after("x = f", true), "return f(a)\n");
  EXPECT_EQ(after("x = h + x"), "return h + x\n");
  EXPECT_EQ(after("h = x"), "h = x\nreturn x\n");
  const std::string wide = "x = " + std::string(74, 'a');
  EXPECT_EQ(after(wide), wide + "\nreturn x\n");
  const std::string name(80, 'a');
  CodeWriter long_name;
  long_name.call(name + " = Class", {"b"});
  EXPECT_EQ(long_name.text(), name + " = (\n    Class(b)\n)\n");
  CodeWriter out;
  out.line("for i in range(2):");
  {
    const auto body = out.indent();
    out.line("x = f(x)");
  }
  out.give_back("x");
  EXPECT_EQ(out.text(), "for i in range(2):\n    x = f(x)\nreturn x\n");
}

TEST(Names, SayLittleWhereTheyNameTheOp) {
  for (const char* name : {"h12", "add_2", "mul", "encoder_norm_mul_3", "transformer_encoder_norm", "slice_2",
                           "words_2", "steps_0_edge", "time_proj_cat", "unsqueeze"})
    EXPECT_TRUE(says_little(name)) << name;
  for (const char* name : {"logits", "words", "lm_head", "hidden", "block1_conv"})
    EXPECT_FALSE(says_little(name)) << name;
}

}  // namespace
}  // namespace bakeoff::emit
