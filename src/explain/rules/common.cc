// Rules for every framework. A function returns nothing if its signal is absent, else what it saw. It sets
// `booked` only if the observed run itself measured the time: then the cause can be named without a further
// run. `most` is a ceiling, by which suspects are sorted. Of a pair of scripts, what both do alike is no
// cause of the gap.

#include <algorithm>
#include <cmath>

#include "base/texts.h"
#include "explain/rules/parts.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

constexpr double kPreparing = 0.6;      // of its waits, that one line of the script takes
constexpr double kHotConversion = 0.1;  // of the samples of its call stack

// Where a framework reads its batches inside a graph, nobody sees it wait for a generator.
Maybe waits(const Subject& s, int) {
  static const Pattern reads_batches(R"(^for |\.fit\(|next\()");
  if (s.input_share() < kWaits && batches_in_python(s))
    return Suspicion{"its batches come from a Python " + s.text("data")};
  if (s.input_share() < kWaits) return {};
  std::string evidence = input_words(s);
  int64_t line = 0;  // that prepares the data while it waits
  for (const HotLine& hot : s.seen.lines) {
    const std::string text = trimmed_line(s, hot.line);
    const bool own = s.source.has(hot.line) && !reads_batches.in(text);
    if (!own || hot.input < kPreparing * s.input_share()) continue;
    line = hot.line;
    evidence += fmt::format("; {} of the samples of its call stack are in '{}'", share(hot.input),
                            table::fit(text, kToldLine));
    break;
  }
  return Suspicion{.evidence = std::move(evidence),
                   .most = without(s.input_share()),
                   .line = line,
                   .booked = of_steps(s.input_share(), s)};
}

// What a hot line of the script makes an array of, as seen in some steps; empty: it was not seen.
Json given_to(const Subject& s, const HotLine& hot) {
  if (!s.seen.conversions.is_array()) return Json::object();
  for (const Json& one : s.seen.conversions)
    if (one.value("line", int64_t{0}) == hot.line) return one;
  return Json::object();
}

// Whether making arrays takes a good part of what the line takes: where that was measured by its seconds in a step, else
// if nothing in the line computes what the array is made of.
bool converts(const Subject& s, const HotLine& hot, const Json& given) {
  static const Pattern computes(R"((^|[^a-z_])(map|lambda|for) *[( a-z])");
  if (!given.contains("seconds")) return !computes.in(s.source.line(hot.line));
  return given.value("seconds", 0.0) >= kHotConversion * s.step_with_waits_s();
}

// A line of the script that makes arrays of Python's or NumPy's numbers, and in which its steps are often seen.
Maybe conversions(const Subject& s, int) {
  for (const HotLine& hot : s.seen.lines) {
    if (hot.share < kHotConversion || !makes_array(s, hot)) continue;
    const Json given = given_to(s, hot);
    // An array, most likely, or what a call returned.
    static const Pattern reads(R"((^|[^j])(np|numpy)\.asarray\( *[A-Za-z_.]+ *[,(])");
    if (!converts(s, hot, given) || (given.empty() && reads.in(s.source.line(hot.line)))) continue;
    return Suspicion{
        .evidence = fmt::format("{} of the samples of its call stack are in {}, which makes an array{}",
                                share(hot.share), s.source.words(hot.line),
                                given.empty() ? "" : " of " + given.value("given", "")),
        .line = hot.line,
        .booked = at_least(of_looks(hot.share, s), s)};
  }
  return {};
}

// Lines that are given lists of arrays: their shares, and the first of them.
Maybe array_lists(const Subject& s, int) {
  double all = 0;
  int64_t first = 0;
  std::string given;
  for (const HotLine& hot : s.seen.lines) {
    const Json known = given_to(s, hot);
    if (known.empty() || !known.value("arrays", false) || !converts(s, hot, known)) continue;
    all += hot.share;
    if (first == 0 || hot.line < first) first = hot.line, given = known.value("given", "");
  }
  if (all < kHotConversion) return {};
  return Suspicion{
      .evidence = fmt::format("{} of the samples of its call stack are in lines that make a tensor of "
                              "a list of arrays, in line {} of {}",
                              share(all), first, given),
      .most = without(all),
      .line = first,
      .booked = at_least(of_looks(all, s), s)};
}

// Where reasons are known, a shape is among them.
Maybe shapes_vary(const Subject& s, int) {
  const std::string reasons = dump(fact(s, "retraces"));
  const bool known = reasons.find('"') != std::string::npos,
             shape = reasons.find("shape") != std::string::npos;
  if (known && !shape) return {};
  auto found = s.stepless() && shape ? compiles_longer(s) : recompiled(s);
  if (found && !shape) found->booked.reset();  // a run with equal shapes says whether they are the reason
  if (const std::string what = reasons_of(s, {"shape"}); found && !what.empty())
    found->evidence += ", as shapes change: " + what;
  return found;
}

Maybe collections(const Subject& s, int) {
  const double each =
      static_cast<double>(s.seen.collections) / static_cast<double>(std::max<int64_t>(1, s.profile.steps));
  if (s.stepless() || each < kOnce) return {};
  const double seconds = s.number("collections_s") * static_cast<double>(s.watched_steps);
  return Suspicion{.evidence = fmt::format("{:.1f} full garbage collections a step", each),
                   .booked = part_of_watched(s, seconds)};
}

Maybe prints(const Subject& s, int) { return printed(s); }

Maybe saves(const Subject& s, int) {
  return called(s, {"torch.save", "tf.train.", "flax.training.checkpoints", "numpy.save", "pickle.dump",
                    "json.dump", "joblib.dump", "model.save", "model.save_weights", "savefig"});
}

Maybe logs(const Subject& s, int) {
  return called(s, {"logging", "SummaryWriter.", "tf.summary.", "wandb.log", "mlflow.log", "tqdm.refresh"});
}

Maybe double_precision(const Subject& s, int) {
  const Json dtypes = fact(s, "dtypes");
  if (dtypes.empty() || dtypes.front() != "float64") return {};
  static const Pattern asks(R"(\.double\(\)|set_default_dtype\(|set_floatx\()");
  Suspicion found{"its parameters are float64"};
  found.line = first_line(s.source, asks);
  const Json other = fact_of_other(s, "dtypes");
  if (s.other_s <= 0 || other.empty() || other.front() == "float64") return found;
  double more_s = 0;
  for (const char* account : {"model", "backward", "optimizer"}) more_s += more_of_account(s, account);
  if (more_s <= 0) return found;
  found.evidence += fmt::format(
      ", the other script's {}; layers, backward passes and optimizer take longer than there, by {} of the time",
      other.front().get<std::string>(), share(more_s / s.mean_s()));
  found.booked = at_least(more_s / s.mean_s(), s);
  return found;
}

constexpr double kFaultS = 0.25e-6;  // the least that a minor page fault costs, s
constexpr double kFaultShare = 0.05;
// What keeps freed memory in the process.
constexpr double kCrowded = 1.5;  // running threads over processors

const Json kMalloc = {{"MALLOC_MMAP_THRESHOLD_", "1073741824"},
                      {"MALLOC_TRIM_THRESHOLD_", "4294967296"},
                      {"MALLOC_TOP_PAD_", "268435456"}};

Maybe page_faults(const Subject& s, int) {
  const double part = s.faults * kFaultS / s.step_with_waits_s();
  if (part < kFaultShare) return {};
  return Suspicion{
      .evidence = fmt::format("{:.0f} page faults a step, at least {} of it", s.faults, share(part)),
      .value = kMalloc};
}

// A function that makes the same in each step.
Maybe rebuilt(const Subject& s, int) {
  const ConstantCall* most = nullptr;
  for (const ConstantCall& one : s.seen.constants)
    if (most == nullptr || one.share > most->share) most = &one;
  const double part = most == nullptr ? 0 : of_looks(most->share, s);
  if (part < kHotConversion) return {};
  return Suspicion{
      .evidence = fmt::format(
          "{} was called {} times in two steps, and returned the same array for the same arguments; it "
          "takes {} of the time",
          most->function, most->calls, share(part)),
      .most = without(part),
      .line = most->line,
      .booked = at_least(part, s)};
}

// More threads of its own processes want to run than there are processors.
Maybe crowded(const Subject& s, int processors) {
  const double running = s.seen.children_running;
  if (s.seen.children < 2 || running < kCrowded * processors || running < kCrowded * s.other_running)
    return {};
  return Suspicion{.evidence = fmt::format(
                       "of the {} processes that it starts {:.1f} threads run at a time, on {} processors",
                       s.seen.children, running, processors),
                   .value = {{"MKL_NUM_THREADS", "1"}, {"OMP_NUM_THREADS", "1"}}};
}

Maybe compile_start(const Subject& s, int) { return compiles_longer(s); }

Maybe sleeps(const Subject& s, int) { return called(s, {"time.sleep"}); }

Maybe copies(const Subject& s, int) { return called(s, {"copy.deepcopy"}); }

Maybe tracing(const Subject& s, int) {
  const Json found = fact(s, "tracing");
  if (found.empty()) return {};
  return Suspicion{fmt::format("{} is on in its training thread", found[0].get<std::string>())};
}

// Of a pair: what a step costs besides its samples is paid more often.
Maybe smaller_batch(const Subject& s, int) {
  const double mine = s.number("batch"), other = number_of_other(s, "batch");
  if (mine < 1 || other < 1.5 * mine) return {};
  Suspicion found{
      .evidence = fmt::format("a step takes {:.0f} samples, and {:.0f} in the other script", mine, other),
      .value = {{"from", mine}, {"to", other}}};
  // A step that takes as long as one of the other script, for fewer samples: as many would cost no more.
  if (s.other_s > 0 && !s.whole && s.mean_s() * mine <= s.other_s * other)
    found.booked = std::max(0.0, 1 - s.other_s / s.mean_s());
  return found;
}

const std::map<std::string, const char*> kCommonRemedies = {
    {"R15",
     "Stop what else runs, or wait: `top` shows it. In a container look at its processor limit. Then "
     "run the same command again."},
    {"R19",
     "Make the work equal first: the same batch, number of parameters, number formats, optimizer and "
     "loss, the same samples an epoch. Then compare."},
    {"R26",
     "Compare versions of packages, drivers and settings of the two runs first; then run old and new "
     "side by side and not on two days."},
    {"R27",
     "There is little to gain by settings. Lower precision on hardware that has it, a smaller model, "
     "or a faster machine."},
    {"R30",
     "One call that takes all rows, all time steps or all indices; lists that are joined once; arrays in place of Python's "
     "containers."},
    {"R29",
     "Start the script with `MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 "
     "MALLOC_TOP_PAD_=268435456`, or with jemalloc or tcmalloc by `LD_PRELOAD`."},
};

}  // namespace

double more_of_backward(const Subject& s) {
  double more_s = 0;
  for (const LineTime& one : line_times(s))
    if (one.text.find(".backward(") != std::string::npos) more_s += one.seconds;
  for (const auto& [text, seconds] : s.other_lines)
    if (text.find(".backward(") != std::string::npos) more_s -= seconds;
  return std::max(0.0, more_s);
}

bool batches_in_python(const Subject& s) {
  const std::string data = s.text("data");
  return data == "generator" || data == "PyDataset" || data == "Sequence";
}

bool makes_array(const Subject& s, const HotLine& hot) {
  static const Pattern makes(
      R"((torch|tf|jnp|jax\.numpy)\.(tensor|as_tensor|constant|convert_to_tensor|array|asarray)\(|)"
      R"((np|numpy)\.(array|asarray|stack|vstack|concatenate)\(|torch\.(FloatTensor|LongTensor)\()");
  return makes.in(s.source.line(hot.line));
}

std::vector<Rule> common_rules() {
  return {
      {.id = "R1",
       .key = "input",
       .signal =
           "waiting for batches takes at least 15% of its steps, or they come from a generator in Python",
       .cause = "it waits for data",
       .change = "prepare batches ahead of time, or keep them in memory",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .numbers = true,
       .suspect = waits},
      {.id = "R1",
       .key = "conversion",
       .signal =
           "at least 10% of the samples of its call stack are in a line that makes an array of Python lists "
           "or of arrays of NumPy",
       .cause = "it makes tensors of Python's numbers again and again",
       .change = "make the array once, before the loop, and take its rows by an index",
       .method = "gives the array that the same line made first",
       .thrown = "cached_conversion",
       .numbers = true,
       .suspect = conversions},
      {.id = "R1",
       .key = "array_lists",
       .signal =
           "at least 10% of the samples of its call stack are in lines that make a tensor of a list of arrays",
       .cause = "it makes tensors of lists of arrays, array by array",
       .change = "make one array of the list first: torch.from_numpy(np.stack(...)), with the same numbers",
       .method = "stacks the list with NumPy first",
       .thrown = "stacked_arrays",
       .suspect = array_lists,
       .within = "conversion",
       .from = R"(torch\.(tensor|as_tensor)\((\[.*\])(,|\)))",
       .to = "torch.$1(np.stack($2)$3"},
      {.id = "R4",
       .key = "save",
       .signal = "something is saved at least every fifth step",
       .cause = "it saves to disk again and again",
       .change = "save once an epoch, or every thousand steps",
       .method = "saves nothing",
       .thrown = "no_save",
       .place = "\\.save|dump\\(",
       .suspect = saves},
      {.id = "R29",
       .key = "allocator",
       .signal = "page faults take at least 5% of a step",
       .cause = "its memory goes back to the system and is asked for again, step by step",
       .change = "start it with MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 "
                 "MALLOC_TOP_PAD_=268435456",
       .method = "lets malloc keep what is freed",
       .thrown = kEnvironment,
       .suspect = page_faults,
       .tries = [](const Subject&, int) { return only(true, kMalloc); }},
      {.id = "R14",
       .key = "crowded",
       .signal =
           "two processes of its own or more, with 1.5 times as many running threads as there are processors",
       .cause = "its processes compute with more threads than there are processors",
       .change =
           "torch.set_num_threads(1) in each process, or start it with OMP_NUM_THREADS=1 MKL_NUM_THREADS=1",
       .method = "lets each process compute with one thread",
       .thrown = kEnvironment,
       .numbers = true,
       .suspect = crowded},
      {.id = "R7",
       .key = "shapes",
       .signal = "three or more compilations after the first steps, and one in 20 steps",
       .cause = "new shapes are compiled again and again",
       .change = "keep shapes equal: drop_last=True, padding",
       .method = "gives the first batch again and again",
       .thrown = "cached_batch",
       .place = "@jit|jax\\.jit|tf\\.function|jit_compile|torch\\.compile",
       .numbers = true,
       .suspect = shapes_vary},
      {.id = "R4",
       .key = "copies",
       .signal = "copy.deepcopy is called at least every fifth step",
       .cause = "it copies whole objects at each step",
       .change = "copy once an epoch, or keep what changes alone",
       .method = "gives the first copy again",
       .thrown = "no_copy",
       .place = "deepcopy\\(",
       .numbers = true,
       .suspect = copies},
      {.id = "R17",
       .key = "tracing",
       .signal = "a profiler, a trace function or tracemalloc is on",
       .cause = "a tool looks at each call or allocation",
       .change = "no profiler, debugger or tracemalloc in the run that counts",
       .method = "starts none of them",
       .thrown = "no_trace",
       .place = "tracemalloc|cProfile|setprofile|settrace",
       .suspect = tracing},
      {.id = "R17",
       .key = "prints",
       .signal = "it prints at least 10 bytes a step",
       .cause = "it prints at each step",
       .change = "print every 100 steps",
       .method = "prints nothing",
       .thrown = "no_print",
       .place = "print\\(",
       .suspect = prints},
      {.id = "R17",
       .key = "log",
       .signal = "it writes to a log or a summary at least every fifth step",
       .cause = "it writes logs at each step",
       .change = "log every 100 steps",
       .method = "logs nothing",
       .thrown = "no_log",
       .place = "add_scalar|add_histogram|summary\\.|logg(er|ing)\\.",
       .suspect = logs},
      {.id = "R17",
       .key = "sleep",
       .signal = "time.sleep is called at least every fifth step",
       .cause = "it sleeps at each step",
       .change = "no time.sleep in the loop",
       .method = "does not sleep",
       .thrown = "no_sleep",
       .place = "sleep\\(",
       .suspect = sleeps,
       .from = R"(^\s*(time\.)?sleep\(.*\)\s*(#.*)?$)",
       .to = ""},
      {.id = "R17",
       .key = "collections",
       .signal = "a full garbage collection at least every fifth step",
       .cause = "it collects garbage at each step",
       .change = "no gc.collect() in the loop",
       .method = "collects nothing",
       .thrown = "no_collect",
       .place = "gc\\.collect",
       .suspect = collections,
       .from = R"(^\s*gc\.collect\(.*\)\s*(#.*)?$)",
       .to = ""},
      {.id = "R30",
       .key = "rebuilt",
       .signal =
           "a function returns the same array for the same arguments in two steps, and takes at least 10% of the time",
       .cause = "a function makes the same array again in each step",
       .change = "call it once, before the loop, and keep what it returns: the values are the same",
       .method = "",
       .thrown = "",
       .suspect = rebuilt},
      {.id = "R9",
       .key = "compile_start",
       .signal =
           "of two scripts whose whole runs are compared: tracing and compiling take at least 40% of the gap",
       .cause = "it traces and compiles for longer than the other script",
       .change = "compile fewer and smaller functions, or keep what was compiled on disk",
       .method = "",
       .thrown = "",
       .suspect = compile_start,
       .says = Says::kPlace},
      {.id = "R19",
       .key = "batch",
       .signal = "of two scripts: the samples of a step are at most two thirds of the other's",
       .cause = "its batches are smaller than the other script's",
       .change = "batches as large as the other script's, with a learning rate that fits them",
       .method = "takes batches of the other's size",
       .thrown = "batch",
       .place = "batch",
       .numbers = true,
       .suspect = smaller_batch},
      {.id = "R19",
       .key = "float64",
       .signal = "parameters are float64",
       .cause = "it computes in float64",
       .change = "float32",
       .method = "computes in float32",
       .thrown = "float32",
       .place = "float64|double\\(|x64",
       .numbers = true,
       .suspect = double_precision,
       .from = R"(float64)",
       .to = "float32"},
  };
}

Remedies common_remedies() { return {"any", kCommonRemedies}; }

}  // namespace bakeoff::explain
