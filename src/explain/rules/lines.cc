// Lines that are slow by what they call, in any framework.
//
// Looks at the stack say how much of the time a line takes; what the line says tells why. Each entry of the table below is a
// rule: a call that is known to copy all of something, to search it, to read a file or to build what does not change. It
// needs no switch, as the time of the line is booked; a line that takes little, or as much in the other script, is left alone.

#include <algorithm>
#include <deque>

#include "base/texts.h"
#include "explain/rules/parts.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

constexpr double kSlowLine = 0.1;  // of the time, from which on such lines are told
constexpr double kEncloses = 0.8;  // of the time of a line, that a loop around it takes
constexpr int kJoined = 3;         // lines of one statement that are read together

struct SlowCall {
  const char* id;
  const char* key;
  const char* pattern;  // of the statement
  const char* what;     // of the lines, as the signal: "..."
  const char* cause;
  const char* change;
  bool numbers = false;
  // Of a line of the script, whose first group is a name: that name stands for NAME in the pattern.
  const char* named = "";
  bool looped = false;  // only in a loop within a step
};

const SlowCall kSlowCalls[] = {
    {"R30", "grown_array",
     R"(^([A-Za-z_][A-Za-z0-9_.]*) *= *[a-z_.]+\.(cat|concat|concatenate|append|insert|vstack|hstack|row_stack|column_stack) *\([ ([]*\1 *,)",
     "assign the concatenation of an array with itself",
     "it makes an array longer bit by bit, and copies all that it has each time",
     "collect the parts in a list and join them once, after the loop: the values are the same"},
    {"R30", "array_updates", R"(^([A-Za-z_][A-Za-z0-9_.]*) *= *\1\.at *\[.*\]\.(set|add|multiply|max|min)\()",
     "change some elements of a JAX array",
     "it changes an array of JAX element by element, and copies all of it each time",
     "change all elements in one call, or within one jitted function (jax.lax.scan), where XLA changes them in place"},
    {"R30", "deque_access", R"(random\.(sample|choices?)\( *NAME|NAME *\[[^]]*[a-z])",
     "draw or index elements of a deque",
     "it takes elements from the middle of a deque, which is a linked list: each access walks through it",
     "keep a list and overwrite its oldest entry, or arrays of NumPy and an array of indices", false,
     R"(^([A-Za-z_][A-Za-z0-9_.]*)(: *[^=]*)? *= *(collections\.)?deque\(.*$)"},
    {"R30", "choice", R"(random\.choice\(.*replace *= *False)",
     "draw without replacement with numpy.random.choice",
     "numpy.random.choice without replacement permutes the whole population for each draw",
     "numpy.random.default_rng().choice(n, k, replace=False), or random.sample(range(n), k)", true},
    {"R30", "shuffles", R"(randperm\(|\.permutation\(|\.shuffle\(|random\.shuffle)", "permute or shuffle",
     "it shuffles all of its data again and again",
     "shuffle once an epoch, or draw indices: torch.randint, Generator.integers", true},
    {"R30", "table_rows", R"(\.iterrows\(|\.itertuples\(|\.iloc *\[|\.loc *\[|\.iat *\[)",
     "read a table of pandas by rows", "it reads a table of pandas row by row",
     "take the columns as arrays once, before the loop: df[columns].to_numpy()"},
    {"R30", "table_apply", R"(\.apply\( *lambda|\.applymap\(|\.apply\(.*axis *= *1)",
     "apply a function to rows of a table", "it calls a Python function for each row of a table",
     "arithmetic of whole columns in place of apply"},
    {"R30", "vectorize", R"(vectorize\(|frompyfunc\(|apply_along_axis\()", "call numpy.vectorize or its like",
     "numpy.vectorize calls a Python function for each element",
     "arithmetic of whole arrays, or numba.njit for what has none"},
    {"R30", "searches", R"(\.index\(|\.pop\( *0 *\)|\.insert\( *0 *,)",
     "search a list or move all of its elements",
     "it searches a list from its start, or moves all of its elements, each time",
     "a dict from value to place, or collections.deque for a queue"},
    {"R30", "map_fn", R"(map_fn\()", "call tf.map_fn", "tf.map_fn calls a function for one row after another",
     "tf.vectorized_map, or ops that take the whole batch"},
    {"R30", "one_hot_product", R"(one_hot\(|torch\.eye\(|np\.eye\(|jnp\.eye\()", "make one-hot rows",
     "it makes one-hot rows, where an index would do",
     "nn.Embedding, tensor[indices], gather or take in their place"},
    {"R30", "einsum_of_three", R"(einsum\([^)]*[a-zA-Z. ]+,[a-zA-Z. ]+,[a-zA-Z. ]+->)",
     "call einsum with three operands",
     "one einsum of three operands or more makes products in a bad order, or one large intermediate array",
     "contract two operands at a time, smallest first, or install opt_einsum, which PyTorch then uses", true},
    {"R30", "all_differences",
     R"((\[ *:, *None|\[:, *:, *None|unsqueeze\().*-.*(\[ *None|\[:, *None|unsqueeze\(|None *\]|None, *:))",
     "subtract all pairs of rows",
     "it makes an array of all differences of two sets of vectors, to sum it up",
     "torch.cdist(x, y), or the squares of both less twice x @ y.T", true},
    {"R30", "row_gradients", R"(autograd\.grad\()", "take gradients one after another in a loop",
     "it takes gradients one by one, with a backward pass for each",
     "torch.func.vmap over torch.func.grad, torch.func.jacrev, or is_grads_batched=True", false, "", true},
    {"R30", "row_derivatives", R"((^|[^a-z_])(jacobian|hessian)\()", "make matrices of derivatives",
     "it makes a matrix of derivatives row by row, with a backward pass for each",
     "torch.func.jacrev, torch.func.vmap over torch.func.grad, or jacobian(..., vectorize=True)"},
    {"R30", "inverse", R"(linalg\.inv\(|torch\.inverse\(|linalg\.pinv\()", "invert a matrix",
     "it inverts a matrix", "linalg.solve, or a Cholesky factor that is kept", true},
    {"R30", "covariance", R"(multivariate_normal\(|MultivariateNormal\()",
     "make a multivariate normal distribution", "it factors the same covariance for each draw",
     "keep its Cholesky factor L, and draw mean + L @ z", true},
    {"R30", "state_dicts", R"(state_dict\(\)|named_parameters\(\)|named_buffers\(\))",
     "go through a state_dict", "it goes through all names of a model at each step",
     "take the lists of tensors once and update them in place: torch._foreach_mul_, torch._foreach_add_"},
    {"R4", "tables",
     R"(\.to_csv\(|savetxt\(|\.to_parquet\(|\.to_json\(|\.to_pickle\(|writerows\(|open\([^)]*["']wb?["'])",
     "write a whole file", "it writes a whole file again and again",
     "keep it open and add a line each time (csv.writer, mode \"a\"), or write once at the end"},
    {"R1", "reads_files",
     R"(np\.load\(|numpy\.load\(|Image\.open\(|imread\(|read_csv\(|read_parquet\(|torch\.load\(|h5py\.File\(|loadtxt\(|read_image\()",
     "read files", "it reads files from disk again and again",
     "read them once and keep them in memory, or read them in loader workers"},
    {"R1", "tokens",
     R"(tokenizer?\(|\.tokenize\(|word_tokenize\(|\.batch_encode_plus\(|literal_eval\(|json\.loads\()",
     "parse text", "it parses the same kind of text at each step",
     "parse all of it once, and keep the numbers"},
    {"R17", "number_checks", R"(isnan\(|isfinite\(|isinf\(|check_numerics\()", "look for NaN",
     "it looks for NaN in its numbers at each step", "look at the loss alone, every hundred steps"},
    {"R17", "pictures", R"(plt\.|\.imshow\(|make_grid\(|save_image\()", "draw pictures",
     "it draws pictures in its loop", "draw them after the training, from numbers that were kept"},
    {"R17", "processes", R"(subprocess\.|os\.system\(|os\.popen\(|check_output\()", "start other programs",
     "it starts other programs in its loop", "ask once, before the loop"},
    {"R4", "folders", R"(glob\(|listdir\(|os\.walk\(|scandir\()", "list folders",
     "it lists folders again and again", "list them once, before the loop"},
    {"R17", "caches_emptied", R"(empty_cache\()", "empty the allocator's cache",
     "it empties the allocator's cache, which is filled again at once", "no empty_cache in the loop"},
    {"R1", "downloads", R"(requests\.(get|post)\(|urlopen\(|urlretrieve\()", "fetch something from a network",
     "it fetches data from a network in its loop", "fetch it once, to a file"},
};

// The line and what follows, while parentheses are open.
std::string statement(const Subject& s, const LineTime& one) {
  std::string text = one.text;
  for (int more = 1; more < kJoined; ++more) {
    if (std::ranges::count(text, '(') <= std::ranges::count(text, ')')) break;
    text += ' ' + s.source.line(one.line.line + more);
  }
  return text;
}

// The pattern with the name in each place of NAME.
std::string about(std::string pattern, const std::string& name) {
  constexpr std::string_view kName = "NAME";
  for (size_t at = pattern.find(kName); at != std::string::npos; at = pattern.find(kName, at + name.size()))
    pattern.replace(at, kName.size(), name);
  return pattern;
}

// Patterns of the call, one for each name that it is about.
std::vector<std::string> patterns_of(const Subject& s, const SlowCall& call) {
  if (*call.named == '\0') return {call.pattern};
  const Pattern named(call.named);
  std::vector<std::string> all;
  for (const Source::File& file : s.source.files())
    for (const std::string& line : file.lines)
      if (const auto name = named.replaced(std::string(trimmed(line)), "$1"))
        all.push_back(about(call.pattern, *name));
  return all;
}

// Whether a loop within a step goes through the line: one of its own, or one that takes as long.
bool in_loop(const Subject& s, const LineTime& one) {
  return one.text.find(" for ") != std::string::npos ||
         std::ranges::any_of(s.seen.loops, [&](const PythonLoop& loop) {
           return loop.rounds > 1 && loop.share >= kEncloses * one.share;
         });
}

Maybe slow_lines(const Subject& s, const SlowCall& call) {
  std::deque<Pattern> patterns;
  for (const std::string& text : patterns_of(s, call)) patterns.emplace_back(text.c_str());
  double seconds = 0;
  const std::vector<LineTime> lines = line_times(s);
  const LineTime* most = nullptr;
  for (const LineTime& one : lines) {
    const std::string text = statement(s, one);
    if (call.looped && !in_loop(s, one)) continue;
    if (std::ranges::none_of(patterns, [&](const Pattern& pattern) { return pattern.in(text); })) continue;
    seconds += one.seconds;
    if (most == nullptr || one.seconds > most->seconds) most = &one;
  }
  const double part = seconds / s.mean_s();
  if (most == nullptr || part < kSlowLine) return {};
  return Suspicion{.evidence = fmt::format("{} of the samples of its call stack are in lines like '{}'",
                                           share(part), table::fit(most->text, kToldLine)),
                   .most = without(part),
                   .line = most->line.line,
                   .booked = at_least(part, s)};
}

}  // namespace

std::vector<Rule> line_rules() {
  return booked_rules(kSlowCalls, "lines that ",
                      " take at least 10% of the time, by samples of the call stack", slow_lines);
}

}  // namespace bakeoff::explain
