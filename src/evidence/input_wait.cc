#include "evidence/input_wait.h"

namespace bakeoff {

InputWait input_wait_of(const std::vector<const Trial*>& trials, int64_t batches) {
  BatchWait sum;
  double burst_ns = 0;
  for (const Trial* trial : trials) {
    for (const Burst& burst : trial->bursts) {
      if (!burst.wait) continue;
      burst_ns += static_cast<double>(burst.ns);
      sum.ns += burst.wait->ns;
      sum.batches += burst.wait->batches;
      sum.first_ns += burst.wait->first_ns;
      sum.firsts += burst.wait->firsts;
    }
  }
  InputWait wait;
  if (burst_ns > 0) wait.share = static_cast<double>(sum.ns + sum.first_ns) / burst_ns;
  constexpr double kMs = 1e6;
  if (sum.batches > 0) wait.batch_ms = static_cast<double>(sum.ns) / static_cast<double>(sum.batches) / kMs;
  if (sum.firsts > 0)
    wait.first_ms = static_cast<double>(sum.first_ns) / static_cast<double>(sum.firsts) / kMs;
  if (batches > 0 && (wait.batch_ms || wait.first_ms)) {
    const double batch = wait.batch_ms.value_or(*(wait.first_ms ? wait.first_ms : wait.batch_ms));
    wait.epoch_ms = wait.first_ms.value_or(batch) + static_cast<double>(batches - 1) * batch;
  }
  return wait;
}

}  // namespace bakeoff
