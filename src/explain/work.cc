#include <fmt/format.h>

#include <cctype>
#include <cmath>

#include "base/json_text.h"
#include "explain/explain.h"

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;

std::string plain(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:g}", value.get<double>());
  return dump(value);
}

std::string joined(const Json& values) {
  if (!values.is_array()) return plain(values);
  std::string all;
  for (const Json& value : values) all += (all.empty() ? "" : ", ") + plain(value);
  return all;
}

// "Adam, lr 0.001": what the first optimizer is made with, as far as both frameworks have it.
std::string optimizer(const Subject& s) {
  const auto found = s.facts().find("optimizers");
  if (found == s.facts().end() || !found->is_array() || found->empty()) return "";
  const Json& first = found->front();
  std::string text = plain(first.value("class", Json()));
  for (const char* key : {"lr", "learning_rate"})
    if (first.contains(key)) text += ", lr " + plain(first[key]);
  for (const char* key : {"momentum", "weight_decay"})
    if (first.contains(key) && first[key].is_number() && first[key] != 0)
      text += fmt::format(", {} {}", key, plain(first[key]));
  return text;
}

std::string input_types(const Subject& s) {
  const auto found = s.facts().find("inputs");
  if (found == s.facts().end() || !found->is_array()) return "";
  std::string all;
  for (const Json& input : *found) all += (all.empty() ? "" : ", ") + plain(input.value("dtype", Json()));
  return all;
}

std::string first_loss(const Subject& s) {
  for (const double loss : s.seen.losses)
    if (std::isfinite(loss)) return fmt::format("{:.4g}", loss);
  return "";
}

// What autograd calls its last op is no name of a loss: one loss can be written in several ways.
std::string loss(const Subject& s) {
  const std::string name = s.text("loss");
  return name.find("Backward") == std::string::npos ? name : "";
}

constexpr const char* kLoss = "loss";

struct Row {
  const char* what;
  std::string (*read)(const Subject&);
};

const Row kRows[] = {
    {"parameters", [](const Subject& s) { return s.text("parameters"); }},
    {"samples of a step",
     [](const Subject& s) { return s.facts().contains("batch") ? fmt::format("{:.0f}", s.samples()) : ""; }},
    {"type of parameters", [](const Subject& s) { return joined(s.facts().value("dtypes", Json())); }},
    {"type of inputs", input_types},
    {"half precision", [](const Subject& s) { return s.text("autocast"); }},
    {"optimizer", optimizer},
    {"samples of an epoch",
     [](const Subject& s) {
       // A call of several steps may end an epoch with fewer.
       const bool known = s.facts().contains("batch") && s.number("steps_per_execution", 1) == 1;
       const double samples = known ? s.profile.epoch_steps * s.samples() : 0;
       return samples > 0 ? fmt::format("{:.0f}", samples) : "";
     }},
    {kLoss, loss},
    {"float32 products", [](const Subject& s) { return s.text("matmul_precision"); }},
    {"device", [](const Subject& s) { return s.text("device"); }},
    {"threads", [](const Subject& s) { return s.text("threads"); }},
    {"first loss", first_loss},
};

bool same_loss(const std::string& a, const std::string& b) {
  const double x = std::atof(a.c_str()), y = std::atof(b.c_str());
  return std::abs(x - y) <= 0.1 * std::max(std::abs(x), std::abs(y));
}

}  // namespace

std::vector<WorkDifference> work_differences(const Subject& first, const Subject& second) {
  std::vector<WorkDifference> all;
  for (const Row& row : kRows) {
    const std::string a = row.read(first), b = row.read(second);
    if (a == b || a.empty() || b.empty()) continue;
    // Each framework has its own names of losses.
    if (std::string(row.what) == kLoss && first.framework() != second.framework()) continue;
    if (std::string(row.what) == "first loss" && same_loss(a, b)) continue;
    all.push_back({row.what, a, b});
  }
  return all;
}

std::vector<WorkDifference> environment_differences(const Subject& first, const Subject& second) {
  const auto& a = first.seen.environment;
  const auto& b = second.seen.environment;
  const auto in = [](const auto& all, const std::string& name) {
    const auto found = all.find(name);
    return found == all.end() ? std::string("not set") : found->second;
  };
  const auto variable = [](const std::string& name) {
    return std::isupper(static_cast<unsigned char>(name[0]));
  };
  std::map<std::string, std::string> names = a;
  names.insert(b.begin(), b.end());
  std::vector<WorkDifference> all;
  for (const auto& [name, value] : names) {
    const bool both = a.contains(name) && b.contains(name);
    if ((both || variable(name)) && in(a, name) != in(b, name))
      all.push_back({name, in(a, name), in(b, name)});
  }
  return all;
}

}  // namespace bakeoff::explain
