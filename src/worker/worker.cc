// The other side of the runner protocol, which must not believe what it reads. The process may be a script of
// the user's own, it may be broken, and it may lie: so every answer is parsed with defaults instead of
// exceptions, times are compared with our own clock (stage_ns, burst), counts beyond any true number are
// errors, and an answer that is no answer is a failure of the contender with the end of its log.
//
// A failure is sticky: once failure_ is set, every request returns nothing at once. So callers ask one thing
// after another and look at ok() once. Only what is nice to know (memory, transfer) is asked with a failure
// of its own, as its loss is no reason to end the contender.
//
// Two clocks are kept apart. `ns` is what the worker says that the burst took, `elapsed_ns` is what went by
// here, and `late_ns` is how long its threads were still busy afterwards. evidence/barrier.h judges the
// difference.

#include "worker/worker.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/temporary_folder.h"
#include "evidence/barrier.h"
#include "ir/training.h"
#include "proc/interrupt.h"
#include "proc/line_channel.h"
#include "sample/memory.h"
#include "worker/outstanding.h"
#include "worker/worker_messages.h"

namespace bakeoff {
namespace {

using Json = nlohmann::json;

constexpr int64_t kRingSlots = 1 << 15;
constexpr size_t kTailLines = 15;
constexpr int64_t kLongestWatch = kSecond;
constexpr double kMost = 1e15;        // steps, nanoseconds or bytes; no true number is larger
constexpr int64_t kJump = 1'000'000;  // clocks of one machine do not differ by this much

// Losses that are not finite travel as text.
double number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  const std::string text = value.is_string() ? value.get<std::string>() : "nan";
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// The text under `key`; `otherwise` if absent.
std::string text_of(const Json& answer, const char* key, const std::string& otherwise = {}) {
  const auto found = answer.find(key);
  return found != answer.end() && found->is_string() ? found->get<std::string>() : otherwise;
}

std::string plain(const Json& value) { return value.is_string() ? value.get<std::string>() : dump(value); }

void add_texts(const Json& answer, const char* key, Texts& into) {
  const auto found = answer.find(key);
  if (found == answer.end() || !found->is_object()) return;
  for (const auto& [name, value] : found->items()) into[name] = plain(value);
}

// A count or nanoseconds; 0 if it is missing, -1 if it is impossibly large.
int64_t integer(const Json& answer, const char* key) {
  const auto found = answer.find(key);
  if (found == answer.end() || !found->is_number()) return 0;
  const auto value = found->get<double>();
  return std::abs(value) <= kMost ? static_cast<int64_t>(value) : -1;
}

// Nanoseconds of a stage that has an answer, as the worker measured them: no more than went by since `asked`. Both
// clocks are the machine's, and the worker's time lies within ours.
int64_t stage_ns(const Json& answer, const char* key, Stage stage, int64_t asked,
                 std::optional<Failure>& failure) {
  constexpr int64_t kClocks = 50'000'000;
  const int64_t ns = integer(answer, key), elapsed = monotonic_clock().now_ns() - asked;
  if (ns < 0 || ns > elapsed + kClocks)
    failure = Failure{
        stage, fmt::format("impossible time: {} ns, while {} went by", plain(answer[key]), elapsed), {}};
  return ns;
}

Cause cause_of(const proc::ExchangeFailure& failure) {
  if (failure.kind == proc::FailureKind::kTimeout) return Cause::kTime;
  if (!failure.exit) return Cause::kOther;
  if (failure.exit->over_limit_bytes > 0) return Cause::kLimit;
  const proc::Exit& exit = *failure.exit;
  const bool killed = exit.kind == proc::Exit::Kind::kSignal && exit.signal == SIGKILL && !exit.asked;
  return killed && exit.out_of_memory ? Cause::kKilled : Cause::kOther;
}

Json path_or_null(const std::filesystem::path& path) { return path.empty() ? Json() : Json(path.string()); }

}  // namespace

struct Worker::Impl {
  WorkerSpec spec;
  std::optional<proc::Child> child;
  std::optional<proc::LineChannel> channel;
  std::optional<proc::MarkRing> ring;
  int64_t next_id = 1;
  int64_t steps_done = 0;                 // since the build
  bool restored = false;                  // the initial weights were loaded again since the build
  std::map<int64_t, double> losses = {};  // reported since the last burst
  std::vector<pid_t> processes = {};      // the worker's, and its ranks'
  double peak_of_ranks = 0;               // bytes: the sum of each process's own peak

  // Call it while they live: the kernel reports the peak of a single process only.
  void take_peak() {
    if (processes.size() < 2) return;
    const auto peak = sample::sample_memory(processes, "/", /*with_pss=*/false).peak_rss_bytes;
    if (peak) peak_of_ranks = *peak;
  }
  proc::ResourceUsage with_peak(proc::ResourceUsage usage) const {
    usage.max_rss_bytes = std::max(usage.max_rss_bytes, static_cast<int64_t>(peak_of_ranks));
    return usage;
  }

  int64_t deadline() const {
    return monotonic_clock().now_ns() +
           static_cast<int64_t>(spec.stage_seconds * static_cast<double>(kSecond));
  }

  // The channel's own failure, in words for a table row.
  Failure broken(Stage stage, const Error& error) const {
    const auto& failure = channel->failure();
    std::string tail = failure ? failure->log_tail : child->log_tail();
    return {stage, error.message, last_lines(tail, kTailLines), failure ? cause_of(*failure) : Cause::kOther};
  }

  // Numbers that are compared with others later (evidence/invariants.h).
  void note(int64_t asked, Ran& ran) {
    steps_done += ran.burst.steps;
    if (ran.loss && std::isfinite(*ran.loss) && !restored) losses[steps_done] = *ran.loss;
    ran.burst.asked = asked;
  }

  // Parses one answer; nullopt, with `failure` set, if it is invalid or a refusal.
  std::optional<Json> read(const std::string& line, int64_t id, Stage stage,
                           std::optional<Failure>& failure) const {
    Json answer = parse_json<Json>(line);
    if (!answer.is_object() || !answer.contains("id") || !answer["id"].is_number() || answer["id"] != id ||
        !answer.contains("ok") || !answer["ok"].is_boolean()) {
      failure = Failure{stage, fmt::format("the worker answered garbage: '{}'", printable(line)),
                        last_lines(child->log_tail(), kTailLines)};
      return std::nullopt;
    }
    if (answer["ok"].get<bool>()) return answer;
    std::string tail = text_of(answer, "traceback");
    if (tail.empty()) tail = child->log_tail();
    failure =
        Failure{stage, text_of(answer, "error", "the worker gave no reason"), last_lines(tail, kTailLines),
                text_of(answer, "stage") == "protocol" ? Cause::kProtocol : Cause::kOther};
    return std::nullopt;
  }
};

Worker::Worker() : impl_(std::make_unique<Impl>()) {}
Worker::~Worker() = default;

pid_t Worker::pid() const { return impl_->child ? impl_->child->pid() : -1; }

namespace {

// One request and its answer.
template <typename Impl>
std::optional<Json> ask(Impl& impl, std::optional<Failure>& failure, Stage stage, Json request) {
  if (failure) return std::nullopt;
  const int64_t id = impl.next_id++;
  request["id"] = id;
  auto answer = impl.channel->exchange(dump(request), impl.deadline(), name(stage));
  if (!answer) {
    failure = impl.broken(stage, answer.error());
    return std::nullopt;
  }
  return impl.read(*answer, id, stage, failure);
}

// A request outside the stages, with its own time limit.
template <typename Impl>
std::optional<Json> ask_within(Impl& impl, std::optional<Failure>& failure, Stage stage, const char* op,
                               double seconds) {
  const double patience = std::exchange(impl.spec.stage_seconds, seconds);
  auto answer = ask(impl, failure, stage, {{"op", op}});
  impl.spec.stage_seconds = patience;
  return answer;
}

}  // namespace

std::filesystem::path new_shared_file(const std::filesystem::path& otherwise) {
  static std::atomic<int> files{0};
  static const auto shared =
      TemporaryFolder::in("/dev/shm", fmt::format("{}shared_", TemporaryFolder::kPrefix));
  const std::filesystem::path folder = shared ? shared->path() : otherwise;
  std::filesystem::path file;
  do {
    file = folder / fmt::format("shared-{}", files++);
  } while (std::filesystem::exists(file));
  return file;
}

std::unique_ptr<Worker> Worker::start(const WorkerSpec& spec) {
  std::unique_ptr<Worker> worker(new Worker());
  Impl& impl = *worker->impl_;
  impl.spec = spec;
  const auto fail = [&](const Error& error) {
    worker->failure_ = Failure{Stage::kStart, error.message, {}};
    return std::move(worker);
  };
  proc::ChildOptions options;
  options.argv = spec.command;
  if (options.argv.empty()) options.argv = {spec.python.string(), "-m", "bakeoff_runner"};
  options.argv.insert(options.argv.end(), {"--framework", spec.framework});
  if (!spec.ring_file.empty()) {
    auto ring = proc::MarkRing::create(spec.ring_file, kRingSlots);
    if (!ring) return fail(ring.error());
    impl.ring.emplace(std::move(*ring));
    options.argv.insert(options.argv.end(), {"--ring", spec.ring_file.string()});
  }
  options.env = spec.environment;
  options.env["PYTHONPATH"] = spec.runner.string();
  options.env["PYTHONUNBUFFERED"] = "1";
  options.env["BAKEOFF_STAGE_SECONDS"] = fmt::format("{:g}", spec.stage_seconds);
  options.env["PYTHONSAFEPATH"] = "1";  // a copy.py in the user's folder is not the library's
  options.env_remove = {"PYTHONHOME", "PYTHONSTARTUP"};
  options.cpus = spec.cpus;
  options.huge_pages = spec.huge_pages;
  options.randomise_addresses = spec.randomise_addresses;
  options.memory_limit_bytes = options.private_memory_limit_bytes = spec.memory_limit_bytes;
  options.log_file = spec.log_file;
  options.own_temporary_folder = true;
  const int64_t begin = monotonic_clock().now_ns();
  auto child = proc::Child::start(options);
  if (!child) return fail(child.error());
  impl.child.emplace(std::move(*child));
  impl.processes = {impl.child->pid()};
  impl.channel.emplace(*impl.child);
  auto hello = impl.channel->receive(impl.deadline(), name(Stage::kStart));
  worker->start_ns_ = monotonic_clock().now_ns() - begin;
  if (impl.ring) impl.ring->unlink();  // the worker has opened it before it said hello
  if (!hello)
    worker->failure_ = impl.broken(Stage::kStart, hello.error());
  else
    impl.read(*hello, 0, Stage::kStart, worker->failure_);
  return worker;
}

std::optional<Imported> Worker::import() {
  const int64_t asked = monotonic_clock().now_ns();
  const auto answer =
      ask(*impl_, failure_, Stage::kImport,
          {{"op", "import"}, {"options", impl_->spec.options}, {"threads", impl_->spec.threads}});
  if (!answer) return std::nullopt;
  Imported imported{stage_ns(*answer, "import_ns", Stage::kImport, asked, failure_), {}, {}};
  add_texts(*answer, "versions", imported.versions);
  add_texts(*answer, "effective", imported.effective);
  for (const Json& pid : answer->value("processes", Json::array()))
    if (pid.is_number_integer()) impl_->processes.push_back(pid.get<pid_t>());
  if (answer->contains("device")) imported.effective["device"] = plain((*answer)["device"]);
  if (ok()) failure_ = wrong_device(impl_->spec.device, impl_->spec.framework, imported.effective);
  return ok() ? std::optional(imported) : std::nullopt;
}

WorkerMemory Worker::memory() {
  std::optional<Failure> why;
  const auto answer = ask_within(*impl_, why, Stage::kMemory, "memory", 5);
  if (!answer) return {.allocator_absent = why ? why->reason : "its worker gave no reason"};
  WorkerMemory memory{.allocator_absent =
                          text_of(*answer, "allocator_absent", "its worker does not report it")};
  const auto peak = answer->find("allocator_peak_bytes");
  if (peak == answer->end() || !peak->is_number()) return memory;
  if (const auto bytes = peak->get<double>(); bytes >= 0 && bytes <= kMost)
    memory.allocator_peak_bytes = bytes;
  else
    memory.allocator_absent = fmt::format("it reports {:g} bytes, which is impossible", bytes);
  return memory;
}

std::optional<Transfer> Worker::transfer() {
  std::optional<Failure> ignored = failure_;
  const auto answer = ask_within(*impl_, ignored, Stage::kTransfer, "transfer", 30);
  if (!answer) return std::nullopt;
  const auto found = answer->find("transfer");
  if (found == answer->end() || !found->is_object()) return std::nullopt;
  Transfer transfer{
      .of = text_of(*found, "of", ""), .ns = integer(*found, "ns"), .bytes = integer(*found, "bytes")};
  const bool known = transfer.of == "batch" || transfer.of == "data";
  return known && transfer.ns > 0 && transfer.bytes > 0 ? std::optional(transfer) : std::nullopt;
}

std::optional<int64_t> Worker::build(const Build& build, Texts& effective) {
  Json request = {{"op", "build"},
                  {"script", build.script.string()},
                  {"weights", path_or_null(build.weights)},
                  {"data", path_or_null(build.data)},
                  {"layout", path_or_null(build.layout)},
                  {"dtype", build.dtype},
                  {"dropout", build.dropout},
                  {"train", build.scenario == ir::Scenario::kTrain},
                  {"scenario", ir::name(build.scenario)}};
  if (build.batch > 0) request["batch"] = build.batch;
  const int64_t asked = monotonic_clock().now_ns();
  const auto answer = ask(*impl_, failure_, Stage::kBuild, std::move(request));
  if (!answer) return std::nullopt;
  impl_->steps_done = 0;
  impl_->restored = false;
  impl_->losses.clear();
  add_texts(*answer, "effective", effective);
  const int64_t ns = stage_ns(*answer, "build_ns", Stage::kBuild, asked, failure_);
  return ok() ? std::optional(ns) : std::nullopt;
}

bool Worker::parity(int64_t first, int64_t count, const std::filesystem::path& grads_in,
                    const std::filesystem::path& out, bool activations) {
  return ask(*impl_, failure_, Stage::kParity,
             {{"op", "parity"},
              {"batch", {first, count}},
              {"grads_in", path_or_null(grads_in)},
              {"activations", activations},
              {"out", out.string()}})
      .has_value();
}

std::optional<Losses> Worker::losses(int64_t steps) {
  const auto answer = ask(*impl_, failure_, Stage::kLosses, {{"op", "losses"}, {"steps", steps}});
  if (!answer) return std::nullopt;
  Losses result;
  result.first_ns = integer(*answer, "first_ns");
  const auto found = answer->find("losses");
  if (found != answer->end() && found->is_array()) {
    for (const Json& loss : *found) result.losses.push_back(number(loss));
  }
  if (static_cast<int64_t>(result.losses.size()) != steps) {
    failure_ =
        Failure{Stage::kLosses, fmt::format("asked for {} losses, got {}", steps, result.losses.size()), {}};
    return std::nullopt;
  }
  return result;
}

std::optional<std::vector<std::string>> Worker::batches(int64_t count,
                                                        const std::vector<std::vector<int64_t>>& row_shapes) {
  std::optional<Failure> refused = failure_;
  const auto answer = ask(*impl_, refused, Stage::kBatches,
                          {{"op", "batches"}, {"count", count}, {"row_shapes", row_shapes}});
  if (!answer) {
    // A worker of an earlier protocol, or of another language, does not know the request.
    if (refused->cause != Cause::kProtocol) failure_ = refused;
    return std::nullopt;
  }
  const auto found = answer->find("sha256");
  if (found == answer->end() || !found->is_array()) return std::nullopt;
  std::vector<std::string> hashes;
  for (const Json& hash : *found) hashes.push_back(plain(hash));
  return hashes;
}

std::optional<std::vector<double>> Worker::rates(const std::vector<int64_t>& steps) {
  std::optional<Failure> refused = failure_;
  const auto answer = ask(*impl_, refused, Stage::kRates, {{"op", "rates"}, {"steps", steps}});
  if (!answer) {
    // A worker of an earlier protocol, or of another language, does not know the request.
    if (refused->cause != Cause::kProtocol) failure_ = refused;
    return std::nullopt;
  }
  const auto found = answer->find("rates");
  if (found == answer->end() || !found->is_array()) return std::nullopt;
  std::vector<double> rates;
  for (const Json& rate : *found) rates.push_back(number(rate));
  return rates;
}

int64_t Worker::steps_done() const { return impl_->steps_done; }

bool Worker::restore() {
  impl_->restored = true;
  return ask(*impl_, failure_, Stage::kRestore, {{"op", "restore"}}).has_value();
}

std::optional<Ran> Worker::run(int64_t steps, Stage stage, const NudgeRequest& nudge) {
  auto ran = burst(steps, stage, nudge);
  if (ran && stage == Stage::kRun) ran->burst.losses = std::exchange(impl_->losses, {});
  if (ran)
    ran->burst.late_ns =
        std::max<int64_t>(0, ran->burst.elapsed_ns - ran->burst.ns) + busy_after(pid(), kLongestWatch);
  return ran;
}

std::optional<Ran> Worker::lead_in(int64_t steps, const NudgeRequest& nudge) {
  return burst(steps, Stage::kRun, nudge);
}

namespace {

std::vector<ReportedOutput> reported_outputs(const Json& answer) {
  std::vector<ReportedOutput> told;
  const auto outputs = answer.find("outputs");
  if (outputs == answer.end() || !outputs->is_array()) return told;
  for (const Json& one : *outputs) {
    const bool whole = one.is_array() && one.size() >= 3 && one[0].is_number_integer();
    told.push_back(whole ? ReportedOutput{one[0].get<int64_t>(), number(one[1]), number(one[2])}
                         : ReportedOutput{.size = -1});
    if (!whole || one.size() == 3 || !one[3].is_array()) continue;
    for (const Json& word : one[3])
      told.back().words.push_back(word.is_number_integer() ? word.get<int64_t>() : -1);
  }
  return told;
}

}  // namespace

std::optional<Ran> Worker::burst(int64_t steps, Stage stage, const NudgeRequest& nudge) {
  Json request = {{"op", "run"}, {"steps", steps}};
  if (!nudge.file.empty()) request["nudge"] = nudge.file.string();
  if (!nudge.file.empty() && nudge.every > 0) request["nudge_every"] = nudge.every;
  const int64_t marks_before = impl_->ring ? impl_->ring->count() : 0;
  const int64_t asked = monotonic_clock().now_ns();
  const auto answer = ask(*impl_, failure_, stage, std::move(request));
  const int64_t elapsed = monotonic_clock().now_ns() - asked;
  if (!answer) return std::nullopt;
  Ran ran;
  ran.burst = {.ns = integer(*answer, "ns"), .steps = integer(*answer, "steps"), .elapsed_ns = elapsed};
  if (ran.burst.ns <= 0 || ran.burst.steps <= 0) {
    const auto claim = [&](const char* key) { return answer->contains(key) ? plain((*answer)[key]) : "no"; };
    failure_ =
        Failure{stage, fmt::format("impossible burst: {} steps in {} ns", claim("steps"), claim("ns")), {}};
    return std::nullopt;
  }
  if (ran.burst.ns > elapsed + kJump) ran.jump_ns = ran.burst.ns - elapsed;
  if (const auto losses = answer->find("losses"); losses != answer->end() && losses->is_array()) {
    for (const Json& loss : *losses) ran.losses.push_back(number(loss));
  }
  if (const auto mean = answer->find("mean_loss"); mean != answer->end() && !mean->is_null())
    ran.mean_loss = number(*mean);
  if (const auto sums = answer->find("sums"); sums != answer->end() && sums->is_object()) {
    for (const auto& [name, value] : sums->items()) ran.sums[name] = number(value);
  }
  if (const auto loss = answer->find("loss"); loss != answer->end() && !loss->is_null())
    ran.loss = number(*loss);
  if (const auto wait = answer->find("wait"); wait != answer->end() && wait->is_object()) {
    ran.burst.wait = BatchWait{integer(*wait, "ns"), integer(*wait, "batches"), integer(*wait, "first_ns"),
                               integer(*wait, "firsts")};
  }
  impl_->note(steps, ran);
  if (impl_->ring) {
    const proc::Marks marks = impl_->ring->since(marks_before);
    for (size_t i = 1; i < marks.ns.size(); ++i) ran.step_ns.push_back(marks.ns[i] - marks.ns[i - 1]);
  }
  return ran;
}

// The worker sends its outputs after the answer, which ends the burst by our clock. Sent with the answer, the
// 50 us that each may take would hide any time that a worker with steps of 10 us leaves out.
std::optional<ToldOutputs> Worker::outputs() {
  constexpr int64_t kTelling = 50'000, kTellingWord = 1000,
                    kMessages = 5'000'000;  // ns: of one, of all of them
  const int64_t asked = monotonic_clock().now_ns();
  const auto answer = ask(*impl_, failure_, Stage::kRun, {{"op", "outputs"}});
  const int64_t elapsed = monotonic_clock().now_ns() - asked;
  if (!answer) return std::nullopt;
  ToldOutputs told{.outputs = reported_outputs(*answer)};
  int64_t may_take = kMessages + kTelling * static_cast<int64_t>(told.outputs.size());
  for (const ReportedOutput& output : told.outputs)
    may_take += kTellingWord * static_cast<int64_t>(output.words.size());
  told.late_ns = std::max<int64_t>(0, elapsed - may_take);
  return told;
}

bool Worker::state(const std::filesystem::path& out) {
  return ask(*impl_, failure_, Stage::kState, {{"op", "state"}, {"out", out.string()}}).has_value();
}

std::optional<Served> Worker::serve(const std::filesystem::path& arrivals, int64_t requests, double limit_s,
                                    const std::filesystem::path& out) {
  const double patience = impl_->spec.stage_seconds;
  impl_->spec.stage_seconds += limit_s;
  const int64_t asked = monotonic_clock().now_ns();
  const auto answer = ask(*impl_, failure_, Stage::kServe,
                          {{"op", "serve"},
                           {"arrivals", path_or_null(arrivals)},
                           {"requests", requests},
                           {"limit_ns", static_cast<int64_t>(limit_s * static_cast<double>(kSecond))},
                           {"out", out.string()}});
  impl_->spec.stage_seconds = patience;
  if (!answer) return std::nullopt;
  Served served{.ns = integer(*answer, "ns"),
                .elapsed_ns = monotonic_clock().now_ns() - asked,
                .compilations = integer(*answer, "compilations")};
  const int64_t count = integer(*answer, "requests");
  const auto bytes = read_file(out);
  if (!bytes || count < 1 || count > requests ||
      bytes->size() != static_cast<size_t>(count) * 2 * sizeof(int64_t)) {
    failure_ = Failure{Stage::kServe, fmt::format("no times of {} requests in {}", count, out.string()), {}};
    return std::nullopt;
  }
  for (size_t at = 0; at < bytes->size(); at += 2 * sizeof(int64_t)) {
    int64_t pair[2];
    std::memcpy(pair, bytes->data() + at, sizeof pair);
    served.start_ns.push_back(pair[0]);
    served.end_ns.push_back(pair[1]);
  }
  return served;
}

void Worker::freeze() {
  if (ok() && !impl_->child->stop()) failure_ = Failure{Stage::kRun, "cannot be frozen between bursts", {}};
}

void Worker::thaw() {
  if (ok() && !impl_->child->resume()) failure_ = Failure{Stage::kRun, "cannot be woken for its burst", {}};
}

const std::vector<pid_t>& Worker::processes() const { return impl_->processes; }

proc::ResourceUsage Worker::kill() {
  if (!impl_->child) return {};
  impl_->take_peak();
  return impl_->with_peak(impl_->child->kill(0).usage);
}

proc::ResourceUsage Worker::close() {
  if (!impl_->child) return {};
  impl_->take_peak();
  if (ok() && !proc::interrupted()) {
    thaw();
    impl_->spec.stage_seconds = 5;
    std::optional<Failure> ignored;
    if (ask(*impl_, ignored, Stage::kClose, {{"op", "close"}})) {
      if (const auto exit = impl_->child->wait(monotonic_clock().now_ns() + 2 * kSecond))
        return impl_->with_peak(exit->usage);
    }
  }
  return impl_->with_peak(impl_->child->kill(0).usage);
}

}  // namespace bakeoff
