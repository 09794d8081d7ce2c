#pragma once

// How frameworks spell an op, as text with places to fill in:
//   {0}, {1}          the inputs
//   {name}            an attribute; axes as the framework has them where it holds pictures as N,H,W,C
//   {name?text}       the text, if a flag is set
//   {index}           of slice: "[:, 2:5]"
//   {sizes}           of expand: the sizes after N
//   {behind}          of gather and scatter_add: places get the axes that x has behind theirs, with size 1; {after}: the
//                     first of them
// ONNX nodes are calls inside one another: "Mul({0}, Sigmoid({0}))"; [1, 2] is a constant of integers, #1 one integer, and
// name=value an attribute.

#include <string>

namespace bakeoff::ir {

struct Spelling {
  std::string call;
  std::string scalar =
      {};  // in place of `call` where input 1, of expand input 0, is a literal that it does not take
  std::string zeros = {};  // in place of `scalar` where that literal is 0
};

struct Spellings {
  Spelling torch;
  Spelling jax;
  Spelling tensorflow;  // Keras 2 has it too
  Spelling keras;
  Spelling libtorch;
  Spelling onnx;
};

}  // namespace bakeoff::ir
