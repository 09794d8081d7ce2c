#include "emit/keras/dialect.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace bakeoff::emit::keras {
namespace {

constexpr std::string_view kPrefix = "ops.";

// Functions that take the same arguments in both.
const std::map<std::string_view, const char*>& tensorflow_names() {
  static const std::map<std::string_view, const char*> names = {
      {"abs", "tf.abs"},
      {"add", "tf.add"},
      {"average_pool", "tf.nn.avg_pool2d"},
      {"cast", "tf.cast"},
      {"clip", "tf.clip_by_value"},
      {"concatenate", "tf.concat"},
      {"convert_to_tensor", "tf.convert_to_tensor"},
      {"copy", "tf.identity"},
      {"equal", "tf.equal"},
      {"expand_dims", "tf.expand_dims"},
      {"gelu", "tf.nn.gelu"},
      {"matmul", "tf.matmul"},
      {"max_pool", "tf.nn.max_pool2d"},
      {"maximum", "tf.maximum"},
      {"multiply", "tf.multiply"},
      {"not_equal", "tf.not_equal"},
      {"ones", "tf.ones"},
      {"pad", "tf.pad"},
      {"power", "tf.pow"},
      {"relu", "tf.nn.relu"},
      {"repeat", "tf.repeat"},
      {"reshape", "tf.reshape"},
      {"sigmoid", "tf.sigmoid"},
      {"softmax", "tf.nn.softmax"},
      {"softplus", "tf.math.softplus"},
      {"split", "tf.split"},
      {"square", "tf.square"},
      {"stack", "tf.stack"},
      {"stop_gradient", "tf.stop_gradient"},
      {"sum", "tf.reduce_sum"},
      {"tanh", "tf.tanh"},
      {"transpose", "tf.transpose"},
      {"unstack", "tf.unstack"},
      {"where", "tf.where"},
  };
  return names;
}

}  // namespace

std::string Dialect::backend(const Settings& settings) const {
  return second ? "tensorflow" : settings.at("backend");
}

std::string Dialect::op(std::string_view name) const {
  if (!second) return std::string(kPrefix) + std::string(name);
  const auto found = tensorflow_names().find(name);
  if (found == tensorflow_names().end()) std::abort();
  return found->second;
}

std::string Dialect::translate(std::string_view text) const {
  if (!second) return std::string(text);
  std::string translated;
  for (size_t at = text.find(kPrefix); at != std::string_view::npos; at = text.find(kPrefix)) {
    const size_t begin = at + kPrefix.size();
    const size_t end = std::min(text.find_first_of("(,", begin), text.size());
    translated += std::string(text.substr(0, at)) + op(text.substr(begin, end - begin));
    text.remove_prefix(end);
  }
  return translated + std::string(text);
}

const Dialect& keras_3() {
  static const Dialect dialect{.framework = "keras", .title = "Keras"};
  return dialect;
}

const Dialect& keras_2() {
  static const Dialect dialect{.framework = "keras2", .title = "Keras 2", .second = true};
  return dialect;
}

}  // namespace bakeoff::emit::keras
