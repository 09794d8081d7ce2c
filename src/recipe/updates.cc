// What surrounds an update: the schedule of the learning rate, clipping, accumulation, averages, parameters
// without decay. Such keys are the ones that are most easily stated without effect, as `final` under a
// constant schedule or `no_decay` without decay. A recipe that states something must mean it, so each of
// these is an error with its line, and never ignored.
//
// Accumulation promises the same mathematics as the whole batch. That holds only where the loss is a mean
// over rows and no op looks across them: check_accumulation() refuses the others.

#include "recipe/updates.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "base/texts.h"
#include "ir/op_table.h"

namespace bakeoff::recipe {
namespace {

using ir::Schedule;
using ir::ScheduleKind;

// The keys of [schedule] that belong to some kinds alone.
struct ScheduleKey {
  const char* name;
  std::vector<ScheduleKind> kinds;
  bool needed;
  const char* example;
};
const ScheduleKey kScheduleKeys[] = {
    {"steps", {ScheduleKind::kCosine, ScheduleKind::kLinear}, true, "steps = 1000"},
    {"final", {ScheduleKind::kCosine, ScheduleKind::kLinear}, false, ""},
    {"every", {ScheduleKind::kStep}, true, "every = 1000"},
    {"factor", {ScheduleKind::kStep}, false, ""},
};

Status check_schedule_keys(const Reader& reader, const Schedule& schedule) {
  for (const ScheduleKey& key : kScheduleKeys) {
    const toml::node* node = reader.find("schedule", key.name);
    const bool belongs = std::find(key.kinds.begin(), key.kinds.end(), schedule.kind) != key.kinds.end();
    if (node != nullptr && !belongs) {
      return reader.error(
          node->source(),
          fmt::format("'schedule.{}' has no effect on kind = \"{}\"", key.name, ir::name(schedule.kind)),
          "remove it");
    }
    if (node == nullptr && belongs && key.needed) {
      return reader.error(
          reader.find("schedule", "kind")->source(),
          fmt::format("schedule.kind = \"{}\" needs schedule.{}", ir::name(schedule.kind), key.name),
          fmt::format("add {} under [schedule]", key.example));
    }
  }
  const toml::node* from = reader.find("schedule", "warmup_from");
  if (from != nullptr && schedule.warmup_steps == 0) {
    return reader.error(from->source(), "'schedule.warmup_from' has no effect without a warm-up",
                        "set schedule.warmup_steps, or remove it");
  }
  if (!schedule.varies()) {
    return reader.error(reader.find("schedule", "kind")->source(),
                        "kind = \"constant\" without a warm-up is no schedule",
                        "set schedule.warmup_steps, or remove [schedule]");
  }
  return Done{};
}

Result<Schedule> read_schedule(const Reader& reader, const toml::table& root) {
  Schedule schedule;
  if (root.get("schedule") == nullptr) return schedule;
  const std::string kind = reader.word("schedule", "kind", "");
  for (const auto k :
       {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    if (ir::name(k) == kind) schedule.kind = k;
  }
  schedule.warmup_steps = reader.integer("schedule", "warmup_steps", schedule.warmup_steps);
  schedule.warmup_from = reader.real("schedule", "warmup_from", schedule.warmup_from);
  schedule.steps = reader.integer("schedule", "steps", schedule.steps);
  schedule.final = reader.real("schedule", "final", schedule.final);
  schedule.every = reader.integer("schedule", "every", schedule.every);
  schedule.step_factor = reader.real("schedule", "factor", schedule.step_factor);
  CHECK_OK(check_schedule_keys(reader, schedule));
  return schedule;
}

// What a word or pattern of no_decay names.
std::set<int> named(const ir::Workload& workload, const std::string& pattern) {
  std::set<int> found;
  for (const ir::Node& node : workload.nodes) {
    const bool norm = ir::info(node.op).name.ends_with("_norm");
    for (const ir::Slot& slot : node.params) {
      if ((pattern == "norm" && norm) || (pattern == "bias" && slot.name.starts_with("bias")))
        found.insert(slot.param);
    }
  }
  if (pattern == "norm" || pattern == "bias") return found;
  for (size_t id = 0; id < workload.parameters.size(); ++id) {
    if (::fnmatch(pattern.c_str(), workload.parameters[id].name.c_str(), 0) == 0)
      found.insert(static_cast<int>(id));
  }
  return found;
}

std::string some_names(const ir::Workload& workload) {
  std::vector<std::string> names;
  for (size_t id = 0; id < workload.parameters.size() && names.size() < 4; ++id) {
    if (ir::trainable(workload.parameters[id])) names.push_back(workload.parameters[id].name);
  }
  return join(names, ", ");
}

Result<std::set<int>> read_no_decay(const Reader& reader, const ir::Workload& workload,
                                    const ir::Optimizer& optimizer) {
  std::set<int> all;
  const toml::node* node = reader.find("optimizer", "no_decay");
  if (node == nullptr) return all;
  if (optimizer.weight_decay == 0) {
    return reader.error(node->source(), "'optimizer.no_decay' has no effect without weight decay",
                        "set optimizer.weight_decay, or remove it");
  }
  for (const std::string& pattern : reader.words("optimizer", "no_decay")) {
    std::set<int> found = named(workload, pattern);
    std::erase_if(found,
                  [&](int id) { return !ir::trainable(workload.parameters[static_cast<size_t>(id)]); });
    if (found.empty()) {
      return reader.error(
          node->source(),
          fmt::format("'{}' of optimizer.no_decay names no parameter of '{}'", pattern, workload.name),
          fmt::format("write \"bias\", \"norm\", or patterns of names such as \"*.bias\"; its parameters are "
                      "{}, ... (`bakeoff show {}`)",
                      some_names(workload), workload.name));
    }
    all.insert(found.begin(), found.end());
  }
  return all;
}

Status check_clipping(const Reader& reader, const ir::Optimizer& optimizer) {
  if (optimizer.clip_norm == 0 || optimizer.clip_value == 0) return Done{};
  return reader.error(reader.find("optimizer", "clip_value")->source(),
                      "'optimizer.clip_norm' and 'optimizer.clip_value' exclude each other",
                      "remove one of them");
}

// Parts of a batch must be equal, and their mean gradient the batch's own.
Status check_accumulation(const Reader& reader, const ir::Workload& workload, int64_t batch, int64_t parts) {
  if (parts == 1) return Done{};
  const toml::source_region& at = reader.find("optimizer", "accumulate")->source();
  if (batch % parts != 0) {
    return reader.error(at, fmt::format("a batch of {} rows cannot be cut into {} equal parts", batch, parts),
                        "set optimizer.accumulate to a divisor of batch");
  }
  if (workload.has(ir::Op::kBatchNorm)) {
    return reader.error(at, "batch_norm takes the statistics of a part for those of the batch",
                        "remove optimizer.accumulate, or take a network without batch_norm");
  }
  for (const ir::LossTerm& term : ir::loss_terms(workload)) {
    const ir::Node& loss = workload.nodes[static_cast<size_t>(term.node)];
    if (loss.word("reduction") == "mean" && !ir::ignore_index(loss)) continue;
    return reader.error(
        at, fmt::format("the loss '{}' is no mean over the rows of a batch", loss.output),
        "remove optimizer.accumulate, or take a loss with reduction=mean and no ignored targets");
  }
  return Done{};
}

}  // namespace

Status read_updates(const Reader& reader, const toml::table& root, const ir::Workload* workload,
                    int64_t batch, ir::Optimizer& optimizer) {
  TRY(optimizer.schedule, read_schedule(reader, root));
  optimizer.clip_norm = reader.real("optimizer", "clip_norm", optimizer.clip_norm);
  optimizer.clip_value = reader.real("optimizer", "clip_value", optimizer.clip_value);
  optimizer.accumulate = reader.integer("optimizer", "accumulate", optimizer.accumulate);
  optimizer.ema = reader.real("optimizer", "ema", optimizer.ema);
  CHECK_OK(check_clipping(reader, optimizer));
  if (workload == nullptr) return Done{};
  TRY(optimizer.no_decay, read_no_decay(reader, *workload, optimizer));
  CHECK_OK(check_accumulation(reader, *workload, batch, optimizer.accumulate));
  return Done{};
}

}  // namespace bakeoff::recipe
