#pragma once

// Proofs of earlier runs. A contender need not pass the gate again if its script, layout, weights, data,
// recipe, packages, settings and machine are the same as when it passed; any change gives another key.

#include <filesystem>
#include <optional>
#include <string>

#include "base/result.h"
#include "parity/proof.h"
#include "plan/lane.h"

namespace bakeoff {

// SHA-256 of the sources of gate and referee that this program was built from: a proof by another gate does
// not count.
const std::string& gate_sources();
// SHA-256 of everything that the contenders of a run share; `data_sha256`: SHA-256 of the file job.data;
// `weights_sha256`: of the initial weights.
std::string job_key(const GateJob& job, const std::string& data_sha256, const std::string& weights_sha256,
                    const std::string& gate = gate_sources());
// SHA-256 of everything that a proof depends on: the job's key, script, layout and settings; `identity`
// stands for environment and machine.
Result<std::string> proof_key(const std::string& job, const ContenderStart& contender,
                              const std::string& identity);

class ProofStore {
 public:
  // With an empty path nothing is kept or found.
  explicit ProofStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // The passed proof under this key, marked as reused; nullopt if absent or damaged.
  std::optional<Parity> find(const std::string& key) const;
  // Keeps the proof if it passed.
  Status keep(const std::string& key, const Parity& parity) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace bakeoff
