#include "evidence/precision.h"

#include <fmt/format.h>

namespace bakeoff {
namespace {

std::optional<double> distance(const Parity& parity, const char* suffix) {
  for (const ParityCheck& check : parity.checks) {
    if (check.tensor == kAgainst && check.what.ends_with(suffix)) return check.error;
  }
  return std::nullopt;
}

bool contains(const std::string& words, const std::string& word) {
  return (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

}  // namespace

std::optional<double> loss_distance(const Parity& parity) { return distance(parity, kLoss); }
std::optional<double> gradient_distance(const Parity& parity) { return distance(parity, kGradients); }
std::optional<double> logit_distance(const Parity& parity) { return distance(parity, kLogits); }

std::string precision_support(const std::string& group, const std::string& device,
                              const std::string& vector_units) {
  const bool bfloat16 = group.starts_with("bfloat16"), float16 = group.starts_with("float16");
  if (!bfloat16 && !float16) return "";
  const std::string name = bfloat16 ? "bfloat16" : "float16";
  if (!device.starts_with("cpu")) return "";
  const std::pair<const char*, const char*> kinds[] = {
      {bfloat16 ? "amx_bf16" : "amx_fp16", bfloat16 ? "AMX-BF16" : "AMX-FP16"},
      {bfloat16 ? "avx512_bf16" : "avx512_fp16", bfloat16 ? "AVX512_BF16" : "AVX512_FP16"}};
  for (const auto& [flag, title] : kinds) {
    if (contains(vector_units, flag))
      return fmt::format("this CPU has {} for {}; a framework that does not use it emulates", title, name);
  }
  return fmt::format("emulated: this CPU has neither {} nor {}, so {} is converted to float32 and back",
                     kinds[1].second, kinds[0].second, name);
}

}  // namespace bakeoff
