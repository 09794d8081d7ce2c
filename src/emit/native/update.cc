// All trained parameters lie in one array, and so do gradients and moments: an update is one loop over
// numbers, which threads cut anywhere, and not one loop for each parameter. plan_update() orders parameters
// so that this works with weight decay: those that decay come first, then the others, then what is frozen,
// and `i < decayed` tells them apart.
//
// The norm of all gradients is a sum whose order would depend on the threads. It is added up in blocks of a
// fixed size, and the blocks in order, so the bits are the same for any number of threads.

#include "emit/native/update.h"

#include <fmt/format.h>

#include "emit/native/ops.h"
#include "emit/updates.h"

namespace bakeoff::emit::native {
namespace {

using ir::EpsForm;
using ir::Optimizer;
using ir::OptimizerKind;

// What a decaying average takes of a new number: "Real{1 - 0.9}".
std::string rest_of(double kept) { return fmt::format("Real{{1 - {}}}", kept); }
bool remembers_first(const Optimizer& o) { return o.adam() || o.momentum != 0; }
bool remembers_second(const Optimizer& o) { return o.kind != OptimizerKind::kSgd; }

// Squares are added up in blocks, the blocks in order: the same bits for any number of threads.
void print_norm(CodeWriter& out) {
  out.print(R"(// The squares of gradients, of part `part` of `parts`.
void square(int64_t part, int64_t parts) {
  for (int64_t block = part; block < kBlocks; block += parts) {
    double sum = 0;
    for (int64_t i = block * kBlock; i < std::min(kTrained, (block + 1) * kBlock); ++i)
      sum += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
    squares[block] = sum;
  }
}

// What keeps the norm of all gradients below kClipNorm.
Real clipping() const {
  double square = 0;
  for (int64_t block = 0; block < kBlocks; ++block) square += squares[block];
  const double norm = std::sqrt(square);
  return norm > kClipNorm ? static_cast<Real>(kClipNorm / norm) : Real{1};
}

)");
}

// Statements that end in `move`, in units of the learning rate.
void print_direction(CodeWriter& out, const Optimizer& o) {
  const std::string momentum = real(o.momentum), eps = real(o.eps);
  const bool inside = o.eps_form == EpsForm::kInside;
  if (o.kind == OptimizerKind::kSgd) {
    if (o.momentum == 0) return out.line("const Real move = g;");
    out.line(fmt::format("first[i] = {} * first[i] + g;", momentum));
    return out.line(o.nesterov ? fmt::format("const Real move = g + {} * first[i];", momentum)
                               : "const Real move = first[i];");
  }
  if (o.kind == OptimizerKind::kRmsprop) {
    out.line(fmt::format("second[i] = {} * second[i] + {} * g * g;", real(o.rho), rest_of(o.rho)));
    const std::string below = inside ? fmt::format("std::sqrt(second[i] + {})", eps)
                                     : fmt::format("(std::sqrt(second[i]) + {})", eps);
    if (o.momentum == 0) return out.line(fmt::format("const Real move = g / {};", below));
    out.line(fmt::format("first[i] = {} * first[i] + g / {};", momentum, below));
    return out.line("const Real move = first[i];");
  }
  out.line(fmt::format("first[i] = {} * first[i] + {} * g;", real(o.beta1), rest_of(o.beta1)));
  out.line(fmt::format("second[i] = {} * second[i] + {} * g * g;", real(o.beta2), rest_of(o.beta2)));
  if (o.eps_form == EpsForm::kHat)
    return out.line(fmt::format("const Real move = factor * first[i] / (std::sqrt(second[i]) + {});", eps));
  out.line(inside ? fmt::format("const Real move = first[i] / c1 / std::sqrt(second[i] / c2 + {});", eps)
                  : fmt::format("const Real move = first[i] / c1 / (std::sqrt(second[i] / c2) + {});", eps));
}

void print_corrections(CodeWriter& out, const Optimizer& o) {
  const std::string first = fmt::format("1 - std::pow({}, static_cast<double>(updates))", o.beta1);
  const std::string second = fmt::format("1 - std::pow({}, static_cast<double>(updates))", o.beta2);
  if (o.eps_form == EpsForm::kHat)
    return out.line(fmt::format("factor = static_cast<Real>(std::sqrt({}) / ({}));", second, first));
  out.line(fmt::format("c1 = static_cast<Real>({});", first));
  out.line(fmt::format("c2 = static_cast<Real>({});", second));
}

}  // namespace

Update plan_update(const Graph& graph) {
  const ir::Workload& workload = graph.workload;
  const Optimizer& o = graph.request.training.optimizer;
  Update plan;
  plan.at.resize(workload.parameters.size());
  const auto rank = [&](size_t p) {
    return graph.gradients[p].empty() ? 2 : o.decays(static_cast<int>(p)) ? 0 : 1;
  };
  for (int wanted = 0; wanted < 3; ++wanted) {
    for (size_t p = 0; p < plan.at.size(); ++p) {
      if (rank(p) != wanted) continue;
      plan.order.push_back(static_cast<int>(p));
      plan.at[p] = plan.all;
      plan.all += ir::elements(workload.parameters[p].shape);
    }
    if (wanted == 0) plan.decayed = plan.all;
    if (wanted == 1) plan.trained = plan.all;
  }
  return plan;
}

void print_constants(CodeWriter& out, const Optimizer& o) {
  out.line(fmt::format("constexpr double kLearningRate = {};", python_real(o.lr)));
  for (const std::string& constant : update_constants(o)) {
    const size_t equals = constant.find(" = ");
    if (constant.starts_with("ACCUMULATE") || constant.starts_with("EMA"))
      continue;  // without effect; in place
    const std::string value = constant.substr(equals + 3);
    const bool whole = value.find_first_not_of("0123456789") == std::string::npos;
    out.line(fmt::format("constexpr {} {} = {};", whole ? "int64_t" : "double",
                         cpp_constant(constant.substr(0, equals)), value));
  }
}

void print_state(CodeWriter& out, const Optimizer& o) {
  if (remembers_first(o)) out.line("Real* const first = allocate<Real>(kTrained);");
  if (remembers_second(o)) out.line("Real* const second = allocate<Real>(kTrained);");
  if (o.ema != 0) out.line("Real* const averages = allocate<Real>(kTrained);");
  if (o.clip_norm != 0)
    out.print(
        "static constexpr int64_t kBlock = 16384, kBlocks = (kTrained + kBlock - 1) / kBlock;\n"
        "double* const squares = allocate<double>(kBlocks);\n");
  out.line("int64_t updates = 0;");
  out.line(fmt::format("Real rate = 0{};", !o.adam()                     ? ""
                                           : o.eps_form == EpsForm::kHat ? ", factor = 1"
                                                                         : ", c1 = 1, c2 = 1"));
}

void print_update(CodeWriter& out, const Optimizer& o, const Update& plan) {
  out.line("// The optimizer as it was before the first update.");
  out.line("void restart() {");
  for (const char* name : {"first", "second"}) {
    const bool there = name == std::string("first") ? remembers_first(o) : remembers_second(o);
    if (there) out.line(fmt::format("  std::fill_n({}, kTrained, Real{{0}});", name));
  }
  out.print("  updates = 0;\n}\n\n");
  if (o.schedule.varies()) print_learning_rate_cpp(out, o);
  if (o.clip_norm != 0) print_norm(out);
  out.line("// What an update needs to know beforehand.");
  out.line("void begin_update() {");
  {
    const auto body = out.indent();
    out.line(fmt::format("rate = static_cast<Real>({});",
                         o.schedule.varies() ? "learning_rate(updates)" : "kLearningRate"));
    out.line("++updates;");
    if (o.adam()) print_corrections(out, o);
  }
  out.print("}\n\n// One update of trained parameters `begin` to `end` from their gradients.\n");
  out.line("void update(int64_t begin, int64_t end) {");
  {
    const auto body = out.indent();
    const char* const more = !o.adam()                     ? ""
                             : o.eps_form == EpsForm::kHat ? ", factor = this->factor"
                                                           : ", c1 = this->c1, c2 = this->c2";
    out.line(fmt::format("const Real rate = this->rate{};", more));
    if (o.clip_norm != 0) out.line("const Real scale = clipping();");
    if (o.clip_value != 0) out.line("constexpr Real kMost = static_cast<Real>(kClipValue);");
    out.line("for (int64_t i = begin; i < end; ++i) {");
    {
      const auto loop = out.indent();
      if (o.clip_norm != 0) out.line("gradients[i] *= scale;");
      if (o.clip_value != 0) out.line("gradients[i] = std::clamp(gradients[i], -kMost, kMost);");
      const bool decays = o.weight_decay != 0 && plan.decayed > 0, beside = decays && o.decoupled();
      if (decays && plan.decayed < plan.trained)
        out.line(
            fmt::format("const Real decay = i < {} ? {} : Real{{0}};", plan.decayed, real(o.weight_decay)));
      else if (decays)
        out.line(fmt::format("const Real decay = {};", real(o.weight_decay)));
      out.line(decays && !beside ? "const Real g = gradients[i] + decay * parameters[i];"
                                 : "const Real g = gradients[i];");
      print_direction(out, o);
      out.line(beside ? "parameters[i] -= rate * (move + decay * parameters[i]);"
                      : "parameters[i] -= rate * move;");
      if (o.ema != 0)
        out.line(
            fmt::format("averages[i] = updates == 1 ? parameters[i] : {} * averages[i] + {} * parameters[i];",
                        real(o.ema), rest_of(o.ema)));
    }
    out.line("}");
  }
  out.print("}\n\n");
  out.print("// One update of all of them.\nvoid update() {\n  begin_update();\n");
  if (o.clip_norm != 0) out.line("  square(0, 1);");
  out.print("  update(0, kTrained);\n  pack(0, 1);\n}\n\n");
}

}  // namespace bakeoff::emit::native
