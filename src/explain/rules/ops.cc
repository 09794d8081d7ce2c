// Ops of the framework, by its own profiler: what a line like `loss.backward()` or a compiled step spends its time on.
//
// A profiler runs in two steps alone, and costs as much as small ops do: of a pair the same ops of both scripts are set side
// by side, scaled so that all ops of a step take no longer than the step took without a profiler. A part of what remains is
// booked, as two steps are few. Ops that are known to be slow have a row in the table below; any other op that takes most
// of a gap is named by its name, which says where to look.

#include <algorithm>
#include <cmath>

#include "explain/rules/parts.h"

namespace bakeoff::explain {
namespace {

constexpr double kHalfOfGap = 0.5;  // of a gap, that ops take
constexpr double kSure = 0.8;       // of what two profiled steps say
constexpr double kMany = 20;        // ops in the place of one
constexpr double kFewest = 16;      // of them

struct SlowOp {
  const char* key;
  const char* pattern;  // of names: of PyTorch "aten::sort", of TensorFlow "TopKV2", of XLA "sort"
  const char* what;     // of the ops, as the signal: "ops that ..."
  const char* cause;
  const char* change;
  const char* id = "R31";
  bool numbers = true;
};

const SlowOp kSlowOps[] = {
    {"op_index",
     "^aten::(_?index_put_(impl_)?|_?unsafe_index_put|masked_scatter_?|index_add_?|scatter_add_?)$|^Scatter|^scatter",
     "write to places given by indices", "ops that write to places given by indices make up most of the gap",
     "whole rows or slices where there are any; for gradients of x[index]: torch.index_select, gather or F.embedding; "
     "for masks: torch.where or a product with the mask"},
    {"op_sort",
     "^aten::(sort|argsort|topk|kthvalue|msort|_?unique[a-z0-9_]*|median)$|^sort|^(TopK|Unique|Sort)", "sort",
     "it sorts in each step, and that makes up most of the gap",
     "sort once before the loop, or ask for the largest alone (topk, max, argmax)"},
    {"op_copy",
     "^aten::(copy_|clone|contiguous|_to_copy|constant_pad_nd)$|^(wrapped_)?(copy|transpose)|^(_Mkl)?(Transpose|Cast)$|^_MklTo",
     "copy arrays", "copies of arrays, into another layout, type or place, make up most of the gap",
     "bring data into their layout, type and place once, before the loop; ask for views: expand in place of repeat, "
     "reshape in place of permute and contiguous"},
    {"op_random",
     "^aten::(normal_|uniform_|bernoulli_|random_|randperm|multinomial|exponential_|native_dropout)$|^rng|^(Stateless)?Random|"
     "^Multinomial",
     "draw random numbers", "random numbers make up most of the gap",
     "draw them once for many steps, or fewer of them; a cheaper distribution where it is enough"},
    {"op_decomposition",
     "^aten::(_?linalg_(svd|eigh?|qr|inv_ex|cholesky_ex|lu_factor_ex|solve_ex|lstsq|det)|linalg_inv|inverse|cholesky_inverse)$|"
     "^(Svd|SelfAdjointEigV2|Qr|MatrixInverse|Cholesky|MatrixSolve)|lapack|cholesky",
     "decompose or invert matrices", "it decomposes or inverts matrices in each step",
     "once for all steps where the matrix stays; solve in place of an inverse; cholesky_solve of one factor"},
    {"op_mask", "^aten::(nonzero|masked_select|count_nonzero)$|^Where$", "look up where a mask is true",
     "it looks up in each step where a mask is true",
     "torch.where, or a product with the mask, in place of x[mask]"},
    {"op_slow_conv", "^aten::(_?slow_conv[a-z0-9_]*|thnn_conv[a-z0-9_]*|im2col|col2im|max_unpool[a-z0-9]*)$",
     "convolve without oneDNN's kernels", "its convolutions run without the kernels of oneDNN",
     "float32 or bfloat16 data, torch.backends.mkldnn.enabled left on, no unfold in place of a convolution"},
    {"op_fill", "^aten::(fill_|zero_)$|^(Fill|ZerosLike)$", "fill arrays with one value",
     "filling arrays with one value makes up most of the gap",
     "zero_grad(set_to_none=True); torch.empty where all is written anyway; no gradients as large as a table of which few "
     "rows are used"},
};

// Ops that take longer than in the other script.
struct Excess {
  double seconds = 0;  // of what is compared, at least
  const OpTime* most = nullptr;
};

double more_of(const Subject& s, const OpTime& op) {
  const auto other = s.other_ops.find(op.name);
  return op.seconds - (other == s.other_ops.end() ? 0 : other->second.seconds);
}

// By how much ops of the other script take longer than the same ops here, s: it may use them in place of ops that stand here
// alone. Ops that `among` accepts count where they take less, too.
template <class Among>
double others_more(const Subject& s, const std::vector<OpTime>& ops, const Among& among) {
  double all = 0;
  for (const auto& [name, other] : s.other_ops) {
    const auto mine = std::ranges::find(ops, name, &OpTime::name);
    const double more = other.seconds - (mine == ops.end() ? 0 : mine->seconds);
    if (more > 0 || among(name)) all += more;
  }
  return all;
}

Excess excess_of(const Subject& s, const std::vector<OpTime>& ops, const Pattern& pattern) {
  Excess all;
  const auto like = [&](const std::string& name) { return !name.empty() && pattern.in(name); };
  for (const OpTime& op : ops) {
    if (!like(op.name)) continue;
    if (!s.other_ops.contains(op.name)) all.seconds += op.seconds;
    if (all.most == nullptr) all.most = &op;
  }
  all.seconds -= others_more(s, ops, like);
  return all;
}

bool wide(const Subject& s) { return !s.other_ops.empty() && is_wide(s); }

std::string op_words(const Subject& s, const OpTime& op) {
  const auto other = s.other_ops.find(op.name);
  const bool whole = op.calls >= 10 || op.calls == std::floor(op.calls);
  return fmt::format("{:.{}f} call{} of {} a step take{} {} of its time, and {} in the other script",
                     op.calls, whole ? 0 : 1, op.calls == 1 ? "" : "s", op.name, op.calls == 1 ? "s" : "",
                     share(op.seconds / s.mean_s()),
                     other == s.other_ops.end() ? "none was seen" : share(other->second.seconds / s.other_s));
}

Maybe slow_op(const Subject& s, const SlowOp& slow) {
  if (!wide(s)) return {};
  const std::vector<OpTime> ops = op_times(s);
  const Excess found = excess_of(s, ops, Pattern(slow.pattern));
  if (found.most == nullptr || found.seconds < kHalfOfGap * (s.mean_s() - s.other_s)) return {};
  return Suspicion{.evidence = op_words(s, *found.most),
                   .booked = kSure * std::min(1.0, found.seconds / s.mean_s())};
}

// For any op.
Maybe any_op(const Subject& s, int) {
  if (!wide(s)) return {};
  const std::vector<OpTime> ops = op_times(s);
  const OpTime* most = nullptr;
  double more_s = 0;
  for (const OpTime& op : ops)
    if (!op.name.empty() && more_of(s, op) > more_s) most = &op, more_s = more_of(s, op);
  more_s -= others_more(s, ops, [](const std::string&) { return false; });
  if (most == nullptr || more_s < kHalfOfGap * (s.mean_s() - s.other_s)) return {};
  const auto known = [&](const SlowOp& slow) { return Pattern(slow.pattern).in(most->name); };
  if (std::ranges::any_of(kSlowOps, known)) return {};  // a cause of its own
  return Suspicion{.evidence = op_words(s, *most), .booked = kSure * std::min(1.0, more_s / s.mean_s())};
}

// A recurrent layer whose time steps are many products, where the other script has one op for all of them.
Maybe unfused_recurrence(const Subject& s, int) {
  static const Pattern whole("^aten::(mkldnn_rnn_layer|_cudnn_rnn)"), products("^aten::(mm|addmm|linear)$");
  const std::vector<OpTime> ops = op_times(s);
  const auto is_whole = [&](const auto& name) { return whole.in(name); };
  if (!wide(s) || std::ranges::any_of(ops, is_whole, &OpTime::name) ||
      std::ranges::none_of(s.other_ops, [&](const auto& one) { return is_whole(one.first); }))
    return {};
  double calls = 0, others = 0;
  for (const OpTime& op : ops) calls += products.in(op.name) ? op.calls : 0;
  for (const auto& [name, op] : s.other_ops) others += products.in(name) ? op.calls : 0;
  if (calls < kFewest || calls < kMany * others) return {};
  const double more_s = more_of_account(s, "model") + more_of_account(s, "backward");
  return Suspicion{
      .evidence = fmt::format("{:.0f} products of matrices a step, and {:.0f} in the other script, whose "
                              "recurrent layer is one op",
                              calls, others),
      .booked = at_least(more_s / s.mean_s(), s)};
}

}  // namespace

std::vector<Rule> op_rules() {
  std::vector<Rule> all =
      booked_rules(kSlowOps, "of two scripts: ops that ",
                   " take at least half of the gap, by the framework's profiler", slow_op);
  all.push_back(
      {.id = "R31",
       .key = "unfused_recurrence",
       .framework = "torch",
       .signal =
           "of two scripts: a recurrent layer is one op in the other, and here many products of matrices",
       .cause = "its recurrent layer runs time step by time step, not as one op",
       .change =
           "no packed sequences (pad_packed_sequence, and mask what is beyond an end), no proj_size, one data "
           "type throughout; no cell called in a loop",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = unfused_recurrence});
  all.push_back(
      {.id = "R31",
       .key = "op_alone",
       .signal = "of two scripts: one op takes at least half of the gap, by the framework's profiler",
       .cause = "one op of the framework takes most of the gap",
       .change = "look for what calls it, and for what the other script does in its place",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = any_op,
       .says = Says::kPlace});
  return all;
}

}  // namespace bakeoff::explain
