#include "records/failure.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace bakeoff {
namespace {

constexpr std::pair<Stage, std::string_view> kStages[] = {{Stage::kOther, "other"},
                                                          {Stage::kNone, ""},
                                                          {Stage::kEnvironment, "environment"},
                                                          {Stage::kEmit, "emit"},
                                                          {Stage::kControls, "controls"},
                                                          {Stage::kCompile, "compile"},
                                                          {Stage::kStart, "start"},
                                                          {Stage::kImport, "import"},
                                                          {Stage::kBuild, "build"},
                                                          {Stage::kPrecision, "precision"},
                                                          {Stage::kParity, "parity"},
                                                          {Stage::kLosses, "losses"},
                                                          {Stage::kBatches, "batches"},
                                                          {Stage::kRates, "rates"},
                                                          {Stage::kRestore, "restore"},
                                                          {Stage::kFirstStep, "first step"},
                                                          {Stage::kWarmUp, "warmup"},
                                                          {Stage::kRun, "run"},
                                                          {Stage::kNudge, "nudge"},
                                                          {Stage::kAudit, "audit"},
                                                          {Stage::kState, "state"},
                                                          {Stage::kServe, "serve"},
                                                          {Stage::kTransfer, "transfer"},
                                                          {Stage::kMemory, "memory"},
                                                          {Stage::kClose, "close"}};

constexpr std::pair<Cause, std::string_view> kCauses[] = {{Cause::kOther, "other"},
                                                          {Cause::kLimit, "limit"},
                                                          {Cause::kKilled, "killed"},
                                                          {Cause::kTime, "time"},
                                                          {Cause::kProtocol, "protocol"}};

template <typename Value, size_t n>
std::string_view word_of(const std::pair<Value, std::string_view> (&table)[n], Value value) {
  return std::ranges::find(table, value, &std::pair<Value, std::string_view>::first)->second;
}

// The first value of the table, kOther, where no row has the word.
template <typename Value, size_t n>
Value value_of(const std::pair<Value, std::string_view> (&table)[n], std::string_view word) {
  const auto row = std::ranges::find(table, word, &std::pair<Value, std::string_view>::second);
  return row == std::end(table) ? table[0].first : row->first;
}

}  // namespace

std::string_view name(Stage stage) { return word_of(kStages, stage); }

std::string_view name(Cause cause) { return word_of(kCauses, cause); }
Stage stage_named(std::string_view word) { return value_of(kStages, word); }
Cause cause_named(std::string_view word) { return value_of(kCauses, word); }

}  // namespace bakeoff
