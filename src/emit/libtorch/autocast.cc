#include "emit/libtorch/autocast.h"

namespace bakeoff::emit::libtorch {

std::string half_type(const std::string& half) {
  return half.empty() ? "" : half == "bfloat16" ? "torch::kBFloat16" : "torch::kHalf";
}

void print_autocast(CodeWriter& out, const std::string& half) {
  if (half.empty()) return;
  out.print(R"(// What torch.autocast is in Python: as long as it lives, products are in $half$.
class Autocast {
 public:
  Autocast() {
    at::autocast::set_autocast_enabled(kDevice.type(), true);
    at::autocast::set_autocast_dtype(kDevice.type(), torch::$type$);
  }
  ~Autocast() {
    at::autocast::clear_cache();  // of the parameters in $half$
    at::autocast::set_autocast_enabled(kDevice.type(), false);
  }
};

)",
            {{"half", half}, {"type", half == "bfloat16" ? "kBFloat16" : "kFloat16"}});
}

}  // namespace bakeoff::emit::libtorch
