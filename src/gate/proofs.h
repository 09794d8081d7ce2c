#pragma once

// Proofs of earlier runs. A contender whose script, layout, weights, data, recipe, packages, settings and
// machine are what they were when it passed the gate need not pass it again; anything else is another key.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "gate/gate.h"
#include "plan/lane.h"

namespace bakeoff {

// SHA-256 over the sources of the gate and of the referee that this program was built from: a proof of another
// gate proves something else.
const std::string& gate_sources();
// SHA-256 over all that the contenders of a run share; `data_sha256` is that of job.data.
std::string job_key(const GateJob& job, const std::string& data_sha256,
                    const std::string& gate = gate_sources());
// SHA-256 over everything that the proof depends on: the job's key, script and layout, settings; `identity`
// stands for environment and machine.
Result<std::string> proof_key(const std::string& job, const GateContender& contender,
                              const std::string& identity);

class ProofStore {
 public:
  // An empty folder keeps nothing.
  explicit ProofStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // A passed proof under this key, marked as reused; nothing if there is none or it is damaged.
  std::optional<Parity> find(const std::string& key) const;
  // Keeps a passed proof; others are not kept.
  Status keep(const std::string& key, const Parity& parity) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace bakeoff
