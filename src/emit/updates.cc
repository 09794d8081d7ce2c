#include "emit/updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "emit/forward_printer.h"

namespace bakeoff::emit {
namespace {

using ir::Schedule;
using ir::ScheduleKind;

bool ends(const Schedule& s) { return s.kind == ScheduleKind::kCosine || s.kind == ScheduleKind::kLinear; }

// The share of the learning rate after the warm-up; `done` and `u` as Schedule has p and u.
std::string share(const Schedule& s, const RateSpelling& spelling) {
  switch (s.kind) {
    case ScheduleKind::kConstant:
      return "1.0";
    case ScheduleKind::kStep:
      return fmt::format("STEP_FACTOR ** ({} // STEP_EVERY)", s.warmup_steps > 0 ? "after" : "step");
    case ScheduleKind::kCosine:
      return fmt::format("FINAL_SHARE + (1 - FINAL_SHARE) * (1 + {}({} * done)) / 2", spelling.cos,
                         spelling.pi);
    case ScheduleKind::kLinear:
      return "1 + (FINAL_SHARE - 1) * done";
  }
  return "";
}

constexpr const char* kWarm = "WARMUP_FROM + (1 - WARMUP_FROM) * step / WARMUP_STEPS";

}  // namespace

std::vector<std::string> update_constants(const ir::Optimizer& o) {
  const Schedule& s = o.schedule;
  std::vector<std::string> all;
  const auto add = [&](const char* name, const std::string& value) {
    all.push_back(fmt::format("{} = {}", name, value));
  };
  if (s.warmup_steps > 0) {
    add("WARMUP_STEPS", std::to_string(s.warmup_steps));
    add("WARMUP_FROM", python_real(s.warmup_from));
  }
  if (ends(s)) {
    add("DECAY_STEPS", std::to_string(s.steps));
    add("FINAL_SHARE", python_real(s.final));
  }
  if (s.kind == ScheduleKind::kStep) {
    add("STEP_EVERY", std::to_string(s.every));
    add("STEP_FACTOR", python_real(s.step_factor));
  }
  if (o.clip_norm != 0) add("CLIP_NORM", python_real(o.clip_norm));
  if (o.clip_value != 0) add("CLIP_VALUE", python_real(o.clip_value));
  if (o.ema != 0) add("EMA_DECAY", python_real(o.ema));
  if (o.accumulate > 1) add("ACCUMULATE", std::to_string(o.accumulate));
  return all;
}

void print_no_decay(CodeWriter& out, const ir::Optimizer& o, const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const int id : o.no_decay) quoted.push_back("\"" + names[static_cast<size_t>(id)] + "\"");
  if (!quoted.empty()) print_list(out, "NO_DECAY = ", '(', quoted);
}

std::vector<std::string> canonical_names(const ir::Workload& workload) {
  std::vector<std::string> all;
  for (const ir::Parameter& parameter : workload.parameters) all.push_back(parameter.name);
  return all;
}

void print_learning_rate(CodeWriter& out, const ir::Optimizer& o, const RateSpelling& spelling) {
  const Schedule& s = o.schedule;
  const bool warms = s.warmup_steps > 0, plain = spelling.cast.empty();
  out.line(plain ? "def learning_rate(step: int) -> float:" : "def learning_rate(step):");
  const auto body = out.indent();
  out.line("\"\"\"That of a step; steps are counted from 0.\"\"\"");
  if (!plain) out.line(spelling.cast);
  if (warms && plain) {
    out.line("if step < WARMUP_STEPS:");
    const auto inner = out.indent();
    out.line(fmt::format("return LEARNING_RATE * ({})", kWarm));
  }
  const std::string after = warms ? "after" : "step";
  if (warms && (ends(s) || s.kind == ScheduleKind::kStep)) out.line("after = step - WARMUP_STEPS");
  if (ends(s)) out.line(fmt::format("done = {}({} / DECAY_STEPS, 1.0)", spelling.minimum, after));
  if (s.kind == ScheduleKind::kConstant && plain) return out.line("return LEARNING_RATE");
  if (warms && !plain) out.line(fmt::format("warm = {}", kWarm));
  out.line(fmt::format("share = {}", share(s, spelling)));
  if (!warms || plain) return out.line("return LEARNING_RATE * share");
  out.line(fmt::format("return LEARNING_RATE * {}(step < WARMUP_STEPS, warm, share)", spelling.where));
}

std::string cpp_constant(const std::string& name) {
  std::string text = "k";
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    text += upper ? c : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    upper = false;
  }
  return text;
}

void print_learning_rate_cpp(CodeWriter& out, const ir::Optimizer& o) {
  const Schedule& s = o.schedule;
  const bool warms = s.warmup_steps > 0;
  out.line("// That of a step; steps are counted from 0.");
  out.line("double learning_rate(int64_t step) {");
  {
    const auto body = out.indent();
    if (warms) {
      out.print(
          "if (step < kWarmupSteps) {\n"
          "  return kLearningRate * (kWarmupFrom + (1 - kWarmupFrom) * step / kWarmupSteps);\n}\n");
    }
    const char* after = warms ? "(step - kWarmupSteps)" : "step";
    if (ends(s)) out.line(fmt::format("const double done = std::min({} / double(kDecaySteps), 1.0);", after));
    switch (s.kind) {
      case ScheduleKind::kConstant:
        out.line("return kLearningRate;");
        break;
      case ScheduleKind::kStep:
        out.line(fmt::format("return kLearningRate * std::pow(kStepFactor, {} / kStepEvery);", after));
        break;
      case ScheduleKind::kCosine:
        out.print(
            "const double cosine = (1 + std::cos(M_PI * done)) / 2;\n"
            "return kLearningRate * (kFinalShare + (1 - kFinalShare) * cosine);\n");
        break;
      case ScheduleKind::kLinear:
        out.line("return kLearningRate * (1 + (kFinalShare - 1) * done);");
        break;
    }
  }
  out.line("}");
  out.blank();
}

Status check_dense_clipping(const Request& request, const std::string& who, const std::string& remedy) {
  const auto& nodes = request.workload.nodes;
  const bool sparse = std::any_of(nodes.begin(), nodes.end(), [&](const ir::Node& node) {
    return node.op == ir::Op::kEmbedding &&
           ir::trainable(request.workload.parameters[static_cast<size_t>(node.param("weight"))]);
  });
  if (request.training.predicts() || !request.training.optimizer.clips() || !sparse) return Done{};
  return Error{.message = who +
                          ": the gradient of an embedding is sparse there, and clipping takes its repeated "
                          "rows one by one instead of their sum",
               .remedy = remedy};
}

}  // namespace bakeoff::emit
