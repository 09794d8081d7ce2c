// Of two scripts: what one writes otherwise than the other, where that takes most of a gap.
//
// Looks at the stack say in which lines the gap lies, and the texts say what these lines run that the other script has
// otherwise (differences.h). Two scripts that are to do the same differ in little; so what a reader would find by comparing
// them is named here, with the time that speaks for it. The table below knows what such differences mean; others are shown as
// they are. None of it is a proof: the time of a line is measured, and that its difference is the reason is read. So all of it
// comes after the causes that a switch confirms.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <deque>

#include "base/texts.h"
#include "explain/rules/parts.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

constexpr double kLeastForward = 0.2;   // of a gap, that is held to be no backward pass
constexpr double kLeastLoop = 0.1;      // of a gap, that a loop takes
constexpr double kMovedTime = 1.0 / 3;  // of a line's time, that it takes at its place in the other script
constexpr const char* kExchanged = "runs with the other script's lines";  // of the exchange that has them
constexpr size_t kMostUnlocated = 4;  // exchanges that are tried where nothing tells which one takes the time
constexpr size_t kLeastMoved = 12;    // characters of a line that stands elsewhere in the other script

struct Otherwise {
  const char* key;
  // Regular expressions; "" fits anything. `mine` is of what this script has, and the other has not, unless `other` is given:
  // that is of what the other has in its place, and this one has not.
  const char* mine;
  const char* other;
  const char* what;  // as the signal: "lines that ..."
  const char* cause;
  const char* change;
  const char* id = "R32";
  bool numbers = true;
  bool alike = false;  // only where the other script's lines have most of their words from this one's
};

const Otherwise kOtherwise[] = {
    {"not_donated", "", R"(donate_arg(nums|names)|donate *=)",
     "donate no array that the other script donates",
     "a compiled function copies a large array that it changes, as it may not reuse its buffer",
     "jax.jit(f, donate_argnums=...) for arrays that nobody needs after the call: the values are the same",
     "R12", false},
    {"row_callbacks", R"(vmap_method *= *["']sequential|vectorized *= *False)", "",
     "call Python back for one row after another",
     "compiled code calls Python back for one row after another",
     "vmap_method=\"broadcast_all\" and a function that takes all rows, or the same in jax.numpy", "R6"},
    {"both_branches", "", R"(cond\(.*lambda[^:]*: *[A-Za-z_.]+\()",
     "compute before a condition what the other script computes in it",
     "what one branch of a condition needs is computed always",
     "call the function within the branch: lax.cond(done, lambda: reset(key), ...)", "R32", false, true},
    {"mapped_too_much", "", R"(in_axes *=)", "map all arguments where the other script names axes",
     "jax.vmap maps an argument that is the same for all rows: what depends on it is computed for each of them, and of a "
     "lax.cond both branches",
     "in_axes with None for what all rows share", "R32"},
    {"whole_derivatives", R"((hessian|jacfwd|jacrev|jacobian)\()",
     R"((jvp|vjp|linearize|batch_jacobian|vmap|grad)\()", "make whole matrices of derivatives",
     "it makes a whole matrix of derivatives, of which a product or a part is used",
     "a product with a vector: jvp of grad, torch.func.jvp, torch.autograd.functional.hvp; blocks: batch_jacobian, vmap of grad"},
    {"reverse_mode", R"((jacrev|jacobian|grad|backward)\()", R"((jacfwd|jvp|forward_ad)\()",
     "take derivatives backward where the other script takes them forward",
     "derivatives are taken backward, output by output, where there are fewer inputs",
     "forward mode: jax.jacfwd, torch.func.jacfwd, one pass for each input"},
    {"row_at_a_time", R"(map_fn\(|lax\.map\(|vectorize\(|\.apply\(|np\.apply_along_axis)", "",
     "call a function for one row after another", "it calls a function for one row after another",
     "ops that take the whole batch, vectorized_map or vmap", "R32", false},
    {"weights_by_numpy", R"([gs]et_weights\()", "", "read and write weights as arrays of NumPy",
     "weights are copied out of the model and back, all of them each time",
     "assign variables to variables (t.assign(...)) within one compiled function, torch._foreach_lerp_",
     "R11"},
    {"one_hot_lookup", R"(one_hot\(|eye\()",
     R"(gather\(|embedding_lookup|[.]embedding\(|Embedding\(|index_select|take\()",
     "multiply one-hot rows with a table where the other script takes its rows",
     "rows of a table are looked up by a product of one-hot vectors with all of it",
     "gather, index_select or an embedding layer: only the rows that are needed, in the backward pass, too"},
    {"single_rows",
     R"(\.unsqueeze\(0\)|\[None(, *(\.\.\.|:))?\]|expand_dims\([^()]*, *(axis *= *)?0\)|\[(np|tf|jnp)\.newaxis|reshape\(\(?1, *-1)",
     "", "make batches of one sample", "a model is called for one sample at a time",
     "give it many samples at once: stack them, or take them from a loader", "R32", false},
    {"all_pairs", R"(==.*\[(:, *)*None|\[(:, *)*None[^=]*==|\.eq\(.*unsqueeze)", "",
     "compare each value with each possible one", "it compares each value with all that it may be",
     "count or write by index: bincount, table[row, column] += 1, index_put_ with accumulate=True", "R32",
     false},
    {"metric_thresholds", "[^_]thresholds *=", "", "compare predictions with many thresholds",
     "a metric compares each prediction with each of its thresholds",
     "evenly spaced thresholds by their number (num_thresholds), fewer of them, or metrics once an epoch",
     "R17"},
    {"batch_metrics", R"([^_a-z]metrics *= *\[ *[^] ])", "",
     "ask for metrics that the other script does not have", "metrics are computed for every batch",
     "fewer metrics in compile, and costly ones at the end of an epoch", "R5"},
    {"every_step", "", R"(% *[^ =]+ *== *0|if .*% *[^ =]+:|(every|interval|frequency|freq)(_[a-z]+)? *=)",
     "do at each step what the other script does every so many steps",
     "it does at each step what the other script does every so many steps",
     "do it every so many steps: if step % every == 0", "R32"},
    {"copied_updates", R"(tensor_scatter_nd_|index_put\(|scatter\(|\.at\[)",
     R"((^|[^_])scatter_(nd_)?(update|add)\(|\.assign|index_copy_|index_put_|scatter_\()",
     "change rows of an array by making another one", "it copies a whole array to change some of its rows",
     "change them in place: tf.Variable.scatter_nd_update, index_copy_, donated arrays", "R12", false},
    {"made_dense", R"(convert_to_tensor\(|to_dense\(|\.toarray\(|\.todense\()", "",
     "make sparse arrays dense",
     "sparse arrays or gradients are made dense, and all of their zeros are computed with",
     "ops that take them as they are: tf.IndexedSlices in apply_gradients, torch.sparse", "R32"},
    {"grouped_convolution", R"(feature_group_count|groups *=|[Dd]epthwise)", "", "convolve group by group",
     "a grouped convolution is slow on this machine", "sums of shifted products, or a plain convolution",
     "R32"},
    {"row_norms", R"(max_norm *= *[^N])", "", "let an embedding keep its rows to a norm",
     "an embedding makes its rows shorter at each call, row by row",
     "clip the rows of a batch in one op, after the optimizer's step: renorm, clamp of norms", "R32"},
    {"attention_weights", "", R"(need_weights *= *False|scaled_dot_product_attention)",
     "ask attention for its weights",
     "attention computes weights that nobody uses, which keeps it from one fused op",
     "need_weights=False, scaled_dot_product_attention"},
    {"argument_checks", "", R"(validate_args *= *False|set_default_validate_args)",
     "let distributions check their arguments", "distributions check their arguments each time they are made",
     "validate_args=False, or torch.distributions.Distribution.set_default_validate_args(False)", "R17",
     false},
    {"full_decomposition", R"(svd\(|eigh?\(|qr\()",
     R"(full_matrices *= *False|svdvals|eigvalsh|svd_lowrank|mode *= *["']reduced)",
     "decompose matrices in full", "it computes all of a decomposition of which a part is used",
     "full_matrices=False, svdvals, eigvalsh, svd_lowrank"},
    {"decompositions",
     R"((^|[^A-Za-z])(svd|svdvals|eigh?|eigvalsh?|qr|cholesky|p?inv|inverse|matrix_(power|exp|norm|rank)|expm|s?logdet|det)\(|norm\(.*ord *= *(-?2|.nuc))",
     "", "decompose or invert matrices",
     "it decomposes or inverts matrices, which takes the third power of their size",
     "products and sums of what is known (a power iteration, a trace), a solve, or the same less often"},
    {"moved_out", "", "",
     "stand at another place of the other script, where they take a third of the time or less,",
     "it does again and again what the other script does less often, at another place",
     "do it there, and keep what it gives", "R32", false},
    {"second_graph", R"(create_graph *= *True)", "", "keep a graph of the backward pass",
     "gradients are made with a graph of their own, as if they were differentiated again",
     "create_graph=False where nobody takes a second derivative, torch.autograd.grad for a single one", "R32",
     false},
    {"full_sort", R"(sort\(|sorted\()",
     R"(topk\(|top_k\(|kthvalue\(|arg(max|partition)\(|nlargest|searchsorted)",
     "sort where the other script selects", "it sorts everything where the largest are wanted",
     "topk, kthvalue, argpartition, heapq.nlargest"},
    {"direct_convolution", "conv", R"(r?fft[n2]?\()", "convolve directly where the other script transforms",
     "a long convolution is computed directly",
     "by Fourier transforms: torch.fft.rfft of both, and their product"},
    {"separable_filter", "conv", R"(conv[123]d?\(.*conv[123]d?\()",
     "filter an area where the other script filters one side after the other",
     "a filter of a whole area is used, where one along each side makes the same",
     "two convolutions with filters of one row and of one column", "R32"},
    {"skips_nothing", "",
     R"(\[[a-z_]*(mask|idx|index|indices|keep|positions?|rows?|picked|chosen|selected)[a-z_]*\]|nonzero\()",
     "compute for all what the other script computes for a part",
     "it computes for all elements what is needed for some", "choose the elements first, then compute", "R32",
     true},
    {"dense_zeros", "", R"(sparse|index_add|segment_sum|scatter_add|csr|BCOO)",
     "compute with dense arrays where the other's are sparse",
     "arrays in which most is 0 are computed as dense ones",
     "sparse matrices, or sums by index over what is not 0"},
    {"state_kept", "",
     R"((^|[ ,(])(h|c|hx|cx|hidden|states?|[a-z_]*cache|past[a-z_]*|carry)(, *[A-Za-z_]+)*\)? *= *[A-Za-z_.]+\(.+, *[[(]?([a-z_]+, *)?\2([^A-Za-z_]|$))",
     "give a model a whole sequence where the other script gives it what is new and its last state",
     "a model goes through all of a sequence again for each new element",
     "keep the layers' states, or keys and values, from call to call, and give it the new element alone",
     "R32"},
    {"again_kept", "",
     R"(\.cache\(|lru_cache|functools\.cache|persist\(|(cache|memo)[a-z]*(\[|\.get|\()|if .* in [a-z_.]*(cache|memo|seen|known))",
     "compute again what the other script keeps", "it computes again what could be kept",
     "keep it: .cache(), functools.lru_cache, an array in memory", "R1", false},
    {"read_again",
     R"((^|[^a-z_.])open\(|loadtxt\(|genfromtxt\(|json\.loads?\(|csv\.(reader|DictReader)|read_(csv|text|bytes|file)\(|\.readlines?\(|(np|torch)\.load\(|pickle\.loads?\()",
     "", "read a file that the other script does not read there",
     "it reads and parses a file where the other script does not", "read it once, and keep the arrays", "R1",
     false},
    {"new_iterators", R"(next\( *iter\()", "", "make an iterator over the data for each batch",
     "an iterator over the data is made anew for each batch: it shuffles, fills buffers or starts workers each time",
     "make it once: for batch in loader, or keep iter(loader) and call next of it", "R1"},
    {"compressed_files", R"(gzip|savez_compressed|zlib|bz2|lzma|compression *=|[^a-z_]compress\()", "",
     "compress or decompress data", "it compresses or decompresses what the other script keeps as it is",
     "files as they are, where the disk has room", "R1", false},
    {"lists_searched", R"(not in |if .* in |\.index\(|\.count\()",
     R"((set|frozenset|Counter|defaultdict|dict)\(|\{.* for .* in )",
     "search lists where the other script looks up",
     "it searches a list from its beginning, where a set or a dictionary is looked up at once",
     "a set, a dictionary or a Counter, made once", "R32", false},
    {"random_draws", R"((choices?|multinomial|categorical|permutation|randperm|shuffle|sample)\()",
     R"((randint|integers|searchsorted|rand|random|uniform)\()",
     "draw from all where the other script draws numbers",
     "it draws by going through all that may be drawn, where a few random numbers are enough",
     "random integers, or cumulative weights that are kept and searched", "R32", true, true},
    {"recomputed",
     R"(use_reentrant|checkpoint_sequential|jax\.checkpoint|(nn|jax)\.remat|recompute_grad|utils\.checkpoint|[^_a-z]checkpoint\((self\.|[a-z_]*(block|layer)))",
     "", "compute again in the backward pass",
     "the backward pass computes again what the forward pass had, to save memory",
     "no checkpoint or remat where the memory is enough: the values are the same", "R12", false},
    {"whole_files", "", R"(mmap_mode|memmap|usecols|columns *=|nrows *=|num_frames|frame_offset)",
     "read whole files where the other script reads parts", "it reads whole files of which it needs a part",
     "np.load(..., mmap_mode=\"r\"), or files that can be read in parts", "R1", false},
    {"hooks_kept", R"(register_[a-z_]*hook\()", R"(handle|\.remove\()",
     "register hooks that the other script removes",
     "hooks are registered and not removed, so that more and more of them run",
     "keep the handle that registering returns, and call its remove(); or register them once", "R32", false},
    {"hooks", R"(register_[a-z_]*hook\()", "", "register hooks",
     "hooks run that the other script does not have", "leave them out, or let them do less", "R32", false},
    {"gradient_calls", "", R"(^ *(with |@)?[a-z_.]*(no_grad|inference_mode)(\(\))?:?$)",
     "compute with gradients where the other script does not",
     "its calls keep what a backward pass would need",
     "torch.no_grad or inference_mode around what is not trained", "R12", false},
    {"graph_kept", "", R"(stop_gradient|detach_?\()", "keep a graph that the other script cuts off",
     "gradients go on into what the other script takes as constant",
     "detach() or stop_gradient where gradients are to end: the model learns something else, if they did anything",
     "R12", true, true},
    {"element_reads", "",
     R"((^| )([A-Za-z_]+) *= *[a-z]+\.(asarray|array|device_get)\( *\2 *\)|(^| )([A-Za-z_]+) *= *\5(\.detach\(\))?(\.cpu\(\))?\.(tolist|numpy)\(|\.tolist\(\))",
     "read arrays that the other script converts first",
     "elements of an array of the framework are read one by one, each by a call of its own",
     "convert the array once, before the loop: np.asarray(x), x.tolist()", "R11", false},
    {"rows_of_file", "", R"(\["[A-Za-z_/]+"\]\[(:|\(\)|\.\.\.)\])",
     "read rows of a file that the other script reads as a whole",
     "rows are read from a file for each batch, and decompressed where they are compressed",
     "read the whole of it once (file[\"x\"][:]), if it fits into memory", "R1", false},
    {"one_model_each", R"(^ *for |for .* in )", R"(vmap\(|stack_module_state|bmm\(|einsum\(|groups *=)",
     "call models or layers one after another", "models of one shape are called one after another",
     "torch.func.stack_module_state and vmap, bmm of stacked weights, grouped convolutions", "R32"},
    {"compile_off",
     R"((jit_compile|jit) *= *False|run_eagerly *= *True|run_functions_eagerly\(True|disable_jit)", "",
     "turn compilation off", "compilation is turned off, so that its steps run op by op",
     "leave that argument out: the values are the same but for rounding", "R6"},
    {"not_compiled", "", R"(tf\.function|jax\.jit|@jit|nnx\.jit|torch\.compile|jit_compile *= *True)",
     "run op by op where the other script compiles", "what the other script compiles runs op by op here",
     "compile the function that makes one step", "R6"},
    {"not_scanned", "", R"(lax\.(scan|fori_loop|while_loop)|nnx\.scan|steps_per_execution)",
     "call Python for each step where the other script scans",
     "a loop in Python makes steps that the other script compiles into one",
     "jax.lax.scan, steps_per_execution", "R5"},
    {"denormal_numbers", "", "set_flush_denormal", "let numbers become very small",
     "numbers that are almost 0 may slow its arithmetic", "torch.set_flush_denormal(True)", "R13"},
    {"compiled_loop",
     R"((while_loop|fori_loop|lax\.scan|tf\.scan|functional\.scan)\(|in tf\.range|TensorArray)", "",
     "loop within compiled code",
     "a loop within compiled code does piece by piece what the other script does at once",
     "ops over all pieces: cumsum, associative_scan, a product of larger arrays"},
    {"picked_by_mask", R"(boolean_mask|masked_select|nonzero\(|\[[a-z_]*mask[a-z_]*\])",
     R"(where\(|masked_fill|\* *[a-z_]*mask)",
     "pick elements by a mask where the other script computes with it",
     "it picks elements by a mask, which copies them and makes arrays of ever new sizes",
     "where(mask, x, 0), or a product with the mask"},
    {"another_precision", R"(bfloat16|float16|autocast|\.half\(|float64|double\(|HIGHEST|highest)", "",
     "compute in another number format", "it computes in a number format that is slow on this machine",
     "the other script's: float32 on most processors", "R16"},
    {"another_layout", "", R"(channels_last|contiguous\(|data_format)", "keep arrays in another layout",
     "its arrays lie in a layout that its ops are slow on",
     "channels_last for convolutions, contiguous() once", "R8", false},
    {"array_copies", R"(\.clone\(|deepcopy\(|\.repeat\(|tile\()", "", "copy arrays",
     "it copies arrays that the other script does not copy",
     "views: expand, slices, as_tensor, from_numpy; copy once", "R32", false},
    {"read_backs", R"(\.item\(|\.cpu\(|\.numpy\(|\.tolist\()", "", "read results in Python",
     "it reads results in Python, number by number or at each step",
     "compute with arrays, and read once in a while", "R11"},
    {"each_alone", R"((^|[[({ ])for .* in )", "", "go through elements in Python",
     "Python goes through elements one by one, where the other script takes all of them at once",
     "ops over whole arrays, or one call for all", "R30", false},
    {"another_number", "", "", "give another number than the other script",
     "it works with another number than the other script",
     "the other script's number, if its results are the ones that you want"},
    {"switched_off", "", "[A-Za-z_]+ *= *(False|None)[,)]", "leave on what the other script switches off",
     "it does what the other script switches off by an argument",
     "give that argument, where nobody needs what it switches off", "R32", true, true},
    {"switched_on", "", "[A-Za-z_]+ *= *True[,)]", "leave off what the other script switches on",
     "it leaves off what the other script switches on by an argument", "give that argument", "R32", true,
     true},
};

std::string joined(const std::vector<std::string>& lines) { return join(lines, " "); }

// A line of the script that the other has at another place, where it takes far less.
bool moved_out(const Subject& s, const CodeTime& code) {
  const auto elsewhere = [&](const std::string& text) {
    return std::ranges::any_of(s.code, [&](const CodeTime& one) {
      return &one != &code &&
             std::ranges::any_of(one.text.other, [&](const auto& there) { return trimmed(there) == text; });
    });
  };
  return std::ranges::any_of(line_times(s), [&](const LineTime& line) {
    const auto there = s.other_within.find(line.text);
    const double there_s = there == s.other_within.end() ? 0 : there->second;
    return line.text.size() >= kLeastMoved && code.text.has(line.line.line) &&
           there_s <= kMovedTime * line.within_s && line.within_s - there_s >= kPartOfGap * gap_s(s) &&
           elsewhere(line.text);
  });
}

size_t indent(const std::string& line) { return std::min(line.find_first_not_of(" \t"), line.size()); }

bool calls(const std::string& line, const std::string& function) {
  const size_t at = line.find(function + "(");
  const auto part_of_name = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return at != std::string::npos && (at == 0 || !part_of_name(line[at - 1])) &&
         line.find("def " + function) == std::string::npos;
}

// Functions that the script defines and a line calls.
std::vector<std::string> own_calls(const Subject& s, const std::string& line) {
  std::vector<std::string> all;
  for (size_t open = line.find('('); open != std::string::npos; open = line.find('(', open + 1)) {
    size_t begin = open;
    while (begin > 0 &&
           (std::isalnum(static_cast<unsigned char>(line[begin - 1])) != 0 || line[begin - 1] == '_'))
      --begin;
    const std::string name = line.substr(begin, open - begin);
    if (!name.empty() && s.source.contains("def " + name + "(")) all.push_back(name);
  }
  return all;
}

// A function that a line calls, which the other script calls at another place, or less deep in its loops and functions, where
// it takes far less.
bool moved_call(const Subject& s, const CodeTime& code) {
  const auto moved = [&](const LineTime& time, const std::string& function) {
    const size_t depth = indent(s.source.line(time.line.line));
    bool stays = false, elsewhere = false;
    for (const CodeTime& one : s.code)
      for (const std::string& line : one.text.other) {
        if (!calls(line, function)) continue;
        const bool here = &one == &code && indent(line) >= depth;
        (here ? stays : elsewhere) = true;
      }
    double there_s = 0;
    for (const auto& [line, seconds] : s.other_within)
      if (calls(line, function)) there_s += seconds;
    return elsewhere && !stays && there_s <= kMovedTime * time.within_s &&
           time.within_s - there_s >= kPartOfGap * gap_s(s);
  };
  return !code.text.mine.empty() && std::ranges::any_of(line_times(s), [&](const LineTime& time) {
    return code.text.has(time.line.line) &&
           std::ranges::any_of(own_calls(s, time.text),
                               [&](const auto& function) { return moved(time, function); });
  });
}

// Whether most words of some lines stand in the others, too.
bool most_words_in(const std::string& some, const std::string& others) {
  const auto words = [](const std::string& text) {
    std::string spaced = text;
    std::ranges::replace_if(
        spaced, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; }, ' ');
    auto all = split(spaced, " ");
    std::erase(all, "");
    return all;
  };
  const auto all = words(some), known = words(others);
  const auto found = std::ranges::count_if(
      all, [&](const auto& word) { return std::ranges::find(known, word) != known.end(); });
  return 2 * found >= std::ssize(all);
}

// Whether the lines are the same but for numbers; digits of names do not count.
bool other_numbers(const Difference& text) {
  const auto without = [](const std::vector<std::string>& lines) {
    std::string kept;
    bool number = false;
    for (const char c : joined(lines)) {
      const bool word =
          !kept.empty() && (std::isalnum(static_cast<unsigned char>(kept.back())) != 0 || kept.back() == '_');
      number = (std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.') && (number || !word);
      if (!number) kept += c;
    }
    return kept;
  };
  return !text.mine.empty() && without(text.mine) == without(text.other);
}

// A row of the table with its expressions.
struct Known {
  explicit Known(const Otherwise& row) : says(&row), mine(row.mine), other(row.other) {}
  const Otherwise* says;
  Pattern mine, other;
};

const std::deque<Known>& table_of_lines() {
  static const std::deque<Known> all(std::begin(kOtherwise), std::end(kOtherwise));
  return all;
}

bool fits(const Subject& s, const CodeTime& code, const Known& row) {
  const bool any_mine = *row.says->mine == '\0', any_other = *row.says->other == '\0';
  if (any_mine && any_other)
    return std::string_view(row.says->key) == "another_number"
               ? other_numbers(code.text)
               : code.text.deeper() || moved_out(s, code) || moved_call(s, code);
  const std::string here = joined(code.text.mine), there = joined(code.text.other);
  if (!any_other && (!row.other.in(there) || row.other.in(here))) return false;
  if (row.says->alike && !most_words_in(there, here)) return false;
  return any_mine || (row.mine.in(here) && (!any_other || !row.mine.in(there)));
}

// The first row of the table that knows what differs; nullptr: none does.
const Otherwise* known_as(const Subject& s, const CodeTime& code) {
  const auto row =
      std::ranges::find_if(table_of_lines(), [&](const Known& one) { return fits(s, code, one); });
  return row == table_of_lines().end() ? nullptr : row->says;
}

std::string line_words(const Subject& s, const LineTime& line, double part, double more_s, bool called) {
  return fmt::format("{} of the samples of its call stack{} are in '{}'{}, which is {} of the gap",
                     share(part), line.start ? " before its first steps" : "",
                     table::fit(line.text, kToldLine), called ? " and what it calls" : "",
                     share(std::min(1.0, more_s / gap_s(s))));
}

// Of one of several exchanges, the one that has these lines, as the value of kOtherLines; null if absent.
Json exchange_of(const Subject& s, const Difference& text) {
  if (text.line == 0) return {};
  const int64_t first = text.mine.empty() ? text.last + 1 : text.line;
  const int64_t last = text.mine.empty() ? std::max(text.line, text.last + 1) : text.last;
  for (size_t i = 0; i < s.exchanges.size() && s.exchanges.size() > 1; ++i)
    if (const auto found = s.exchanges[i].lower_bound(first);
        found != s.exchanges[i].end() && found->first <= last)
      return Json::array({i});
  return {};
}

// Booked is what its lines take more than in the other script.
Suspicion suspicion_of(const Subject& s, const CodeTime& code, double more_s) {
  const HotLine& line = code.line.line;
  const bool called = code.own && line.within > line.share;
  return {
      .evidence = fmt::format(
          "{}; {}: {}", line_words(s, code.line, called ? line.within : line.share, code.line_more_s, called),
          code.own || code.text.has(line.line) ? "it differs" : "it needs " + s.source.words(code.text.line),
          difference_words(code.text)),
      .value = exchange_of(s, code.text),
      .line = code.own ? line.line : code.text.line,
      .booked = at_least(std::min(1.0, more_s / s.mean_s()), s)};
}

// Any difference in a line that takes most of the gap; nullptr if there is none. What many lines need a little may
// be what all of them compute with, and says nothing; one that gives other names alone says least.
const CodeTime* most_of_gap(const Subject& s) {
  const double least_s = kPartOfGap * gap_s(s);
  const CodeTime* most = nullptr;
  const auto rank = [](const CodeTime& code) { return std::pair(!code.text.renames(), code.nearest_s); };
  for (const CodeTime& code : s.code)
    if (std::min(code.nearest_s, code.line_more_s) >= least_s &&
        (most == nullptr || rank(*most) < rank(code)))
      most = &code;
  return is_wide(s) ? most : nullptr;
}

// Whether all that the texts differ in belongs together, and looks at the stack do not show where the gap lies.
bool alone(const Subject& s) {
  return is_wide(s) && s.exchanges.size() == 1 && !s.code.empty() && most_of_gap(s) == nullptr;
}

// Booked is the gap of the observed runs.
Suspicion alone_suspicion(const Subject& s, const CodeTime& code) {
  const size_t places = s.code.size();
  return {.evidence = fmt::format("the texts of the scripts differ in {}: {}",
                                  places > 1 ? fmt::format("{} places, one of them", places) : "one place",
                                  difference_words(code.text)),
          .value = {},
          .line = code.text.line,
          .booked = at_least(gap_s(s) / s.mean_s(), s)};
}

Maybe otherwise(const Subject& s, const Otherwise& row) {
  if (!is_wide(s)) return {};
  const auto of_row = std::ranges::find(table_of_lines(), &row, &Known::says);
  const CodeTime* most = nullptr;
  for (const CodeTime& code : s.code)
    if (fits(s, code, *of_row) && (most == nullptr || code.nearest_s > most->nearest_s)) most = &code;
  if (most == nullptr || known_as(s, *most) != &row) return {};
  if (most->more_s >= kPartOfGap * gap_s(s)) return suspicion_of(s, *most, most->more_s);
  if (alone(s)) return alone_suspicion(s, *most);
  return {};
}

// What differs, where looks at the stack do not find most of the gap in it. Of several exchanges each is tried, and not booked.
Maybe unlocated(const Subject& s) {
  if (!is_wide(s) || s.exchanges.empty() || s.code.empty()) return {};
  std::vector<const CodeTime*> all;
  for (const CodeTime& code : s.code) all.push_back(&code);
  std::ranges::stable_sort(all, std::greater<>{}, [](const CodeTime* code) { return code->more_s; });
  if (alone(s)) return alone_suspicion(s, *all.front());
  std::vector<Suspicion> found;
  for (const CodeTime* code : all) {
    Json value = exchange_of(s, code->text);
    const bool known = std::ranges::any_of(found, [&](const Suspicion& one) { return one.value == value; });
    if (!known && found.size() < kMostUnlocated)
      found.push_back({.evidence = "it differs: " + difference_words(code->text),
                       .value = std::move(value),
                       .line = code->text.line});
  }
  Suspicion first = found.front();
  first.also.assign(found.begin() + 1, found.end());
  return first;
}

// The same, where the table does not say what it means.
Maybe other_code(const Subject& s, int) {
  const CodeTime* most = most_of_gap(s);
  Maybe found = most == nullptr ? unlocated(s) : suspicion_of(s, *most, most->nearest_s);
  if (!found) return {};
  for (const Otherwise& row : kOtherwise)
    if (const auto known = otherwise(s, row); known && known->line == found->line) return {};
  return found;
}

// Whether the other script has a loop that begins with the same line.
bool other_has(const Subject& s, int64_t line) {
  const std::string text = trimmed_line(s, line);
  return text.empty() || s.other_source.contains(text);
}

// A loop in Python within one step, which the other script does not have. Its part of the backward pass is seen there, and
// is no part of the loop; so the loop is held against the gap without it.
Maybe python_loop(const Subject& s, int) {
  if (!is_wide(s)) return {};
  const PythonLoop* most = nullptr;
  for (const PythonLoop& loop : s.seen.loops) {
    if (loop.rounds > 0 && !other_has(s, loop.line) && (most == nullptr || loop.share > most->share))
      most = &loop;
  }
  if (most == nullptr) return {};
  const double seconds = most->share * s.looked_at_s(), excess_s = seconds - s.other_loop_s;
  const double all_s = gap_s(s), forward_s = std::max(all_s - more_of_backward(s), kLeastForward * all_s);
  if (excess_s < kPartOfGap * forward_s || excess_s < kLeastLoop * all_s) return {};
  for (const CodeTime& code : s.code) {  // what the table says of that line is more
    if (code.text.mine.empty() || !code.text.has(most->line) || code.nearest_s < kPartOfGap * all_s) continue;
    const Otherwise* known = known_as(s, code);
    if (known != nullptr && std::string_view(known->key) != "each_alone") return {};
  }
  const bool backward = excess_s < kPartOfGap * all_s;
  return Suspicion{
      .evidence = fmt::format("a step goes {} times round the loop in {}, which takes {} of it{}",
                              most->rounds, s.source.words(most->line), share(most->share),
                              backward ? ", and the backward pass goes through what it made" : ""),
      .line = most->line,
      .booked = at_least(std::min(seconds, excess_s) / s.mean_s(), s)};
}

// Its steps become longer, and the other script's do not.
Maybe growing_steps(const Subject& s, int) {
  const auto trend = step_trend(s.seen);
  if (!trend || s.whole || s.other_grows) return {};
  const double mean_s = (trend->first_s + trend->last_s) / 2;
  const double grown_s = trend->least_per_step_s * static_cast<double>(trend->steps) / 2;
  return Suspicion{.evidence = fmt::format("a step takes {:.3g} ms at first and {:.3g} ms after {} steps{}",
                                           1e3 * trend->first_s, 1e3 * trend->last_s, trend->steps,
                                           trend->of_epoch ? ", in each epoch anew" : ""),
                   .booked = of_steps(std::min(1.0, grown_s / mean_s), s)};
}

// A line that takes far longer than the same line of the other script, or that the other script does not have.
Maybe hot_line(const Subject& s, int processors) {
  if (!is_wide(s) || most_of_gap(s) != nullptr) return {};
  // Where a framework computes behind the loop, a line that reads a result waits for what other lines asked for.
  static const Pattern reads(
      R"(float\(|int\(|\.item\(|\.numpy\(|block_until_ready|device_get|asarray\(|print\()");
  const bool behind = s.uses("jax") || s.uses("tensorflow");
  const bool looped = python_loop(s, processors).has_value();
  const std::vector<LineTime> lines = line_times(s);
  const LineTime* most = nullptr;
  double more_s = 0;
  for (const LineTime& one : lines) {
    if (behind && reads.in(one.text)) continue;
    if (looped && one.text.find(".backward(") != std::string::npos)
      continue;  // it goes through what the loop made
    if (more_of_line(s, one) > more_s) most = &one, more_s = more_of_line(s, one);
  }
  if (most == nullptr || more_s < kPartOfGap * gap_s(s)) return {};
  return Suspicion{.evidence = line_words(s, *most, most->share, more_s, false),
                   .line = s.source.has(most->line.line) ? most->line.line : 0,
                   .booked = at_least(std::min(most->seconds, more_s) / s.mean_s(), s)};
}

std::vector<Rule> place_rules() {
  return {
      {.id = "R30",
       .key = "python_loop",
       .signal =
           "of two scripts: a loop with 8 rounds or more in a step, which the other script does not have, takes at "
           "least 40% of the gap, by samples of the call stack",
       .cause = "a Python loop does piece by piece what the other script does at once",
       .change =
           "one call over all pieces in place of the loop: a layer over the whole sequence, one product of larger "
           "arrays, an array of indices",
       .method = "",
       .thrown = "",
       .numbers = true,
       .suspect = python_loop,
       .says = Says::kPlace},
      {.id = "R32",
       .key = "growing_steps",
       .signal =
           "steps become longer with their number, by half or more, and those of the other script do not",
       .cause = "its steps become longer and longer",
       .change =
           "look for what grows: an array or a list that is joined, copied or searched, a graph that is kept, an "
           "input, a cache, hooks",
       .method = "",
       .thrown = "",
       .suspect = growing_steps,
       .says = Says::kPlace},
      {.id = "R32",
       .key = "other_code",
       .signal =
           "of two scripts: lines that run what the other script writes differently take at least 40% of the gap, by "
           "samples of the call stack; or the texts differ in lines that belong together alone",
       .cause = "most of the gap is in lines that the other script writes differently",
       .change = "write them as the other script does, if its results are the ones that you want",
       .method = kExchanged,
       .thrown = kOtherLines,
       .numbers = true,
       .suspect = other_code,
       .says = Says::kUnreadPlace},
      {.id = "R32",
       .key = "hot_line",
       .signal = "of two scripts: one line takes at least 40% of the gap, by samples of the call stack",
       .cause = "one line takes most of the gap",
       .change = "look at what that line does, and at what the other script does in its place",
       .method = "",
       .thrown = "",
       .suspect = hot_line,
       .says = Says::kUnreadPlace},
  };
}

}  // namespace

std::vector<Rule> otherwise_rules() {
  std::vector<Rule> all =
      booked_rules(kOtherwise, "of two scripts: lines that ",
                   ", by their text, take at least 40% of the gap, by samples of the call stack", otherwise);
  for (Rule& rule : all) rule.says = Says::kPlace, rule.method = kExchanged, rule.thrown = kOtherLines;
  std::ranges::move(place_rules(), std::back_inserter(all));
  return all;
}

}  // namespace bakeoff::explain
