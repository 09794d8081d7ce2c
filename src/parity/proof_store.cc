#include "parity/proof_store.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/version.h"
#include "ir/text.h"
#include "parity/proof_variants.h"
#include "records/records.h"

namespace bakeoff::embedded {
const std::vector<File>& gate_sources();
}

namespace bakeoff {
namespace {

std::string key_of(const std::vector<std::string>& parts) {
  Sha256 hash;
  for (const std::string& part : parts) {
    hash.add(std::to_string(part.size()) + ":");
    hash.add(part);
  }
  return hash.hex();
}

}  // namespace

const std::string& gate_sources() {
  static const std::string hash = [] {
    std::vector<std::string> parts;
    for (const embedded::File& file : embedded::gate_sources()) {
      parts.emplace_back(file.path);
      parts.emplace_back(file.text);
    }
    return key_of(parts);
  }();
  return hash;
}

std::string job_key(const GateJob& job, const std::string& data_sha256, const std::string& weights_sha256,
                    const std::string& gate) {
  return key_of({std::string(kVersion), gate, ir::dump(job.workload), ir::dump(job.training),
                 std::to_string(job.steps), data_sha256, weights_sha256});
}

Result<std::string> proof_key(const std::string& job, const ContenderStart& contender,
                              const std::string& identity) {
  TRY(std::string script, read_file(contender.script));
  std::string layout;
  if (!contender.layout.empty()) {
    TRY(layout, read_file(contender.layout));
  }
  std::vector<std::string> parts = {job,
                                    std::move(script),
                                    std::move(layout),
                                    identity,
                                    contender.worker.runner.filename().string(),
                                    std::to_string(contender.worker.threads)};
  // A compiled worker lies in a folder named after all it was made from.
  if (const auto& command = contender.worker.command; !command.empty())
    parts.push_back(std::filesystem::path(command[0]).parent_path().filename().string());
  if (is_variant(contender)) {
    TRY(std::string twin, read_file(contender.twin_script));
    parts.push_back(std::move(twin));
  }
  for (const auto& [name, value] : contender.worker.options) parts.push_back(name + "=" + value);
  return key_of(parts);
}

std::optional<Parity> ProofStore::find(const std::string& key) const {
  if (folder_.empty()) return std::nullopt;
  const auto text = read_file(folder_ / (key + ".json"));
  if (!text) return std::nullopt;
  auto parity = from_json<Parity>(*text, "proof");
  if (!parity || !parity->passed() || parity->checks.empty()) return std::nullopt;
  parity->reused = true;
  parity->first_step_cold_ns = 0;  // of another run's cache
  return std::move(*parity);
}

Status ProofStore::keep(const std::string& key, const Parity& parity) const {
  if (folder_.empty() || !parity.passed()) return Done{};
  return write_file(folder_ / (key + ".json"), to_json(parity) + "\n");
}

}  // namespace bakeoff
