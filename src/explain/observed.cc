// The script has to run as it would without us: from its own folder, or a copy of it, with its own
// PYTHONPATH, arguments and variables. Hooks are put in by a sitecustomize that Python loads first
// (bakeoff_observe/site), which gives the script back the PYTHONPATH that it would have had.
//
// Compilers keep files in caches whose place may depend on the temporary folder, which here is new for each
// process. They get a folder that stays, or each run of a lane would compile again.
//
// The report comes from a process in which anything may have happened, so it is parsed as a whole: whatever
// does not fit is "garbage", with its beginning, and never a crash. An exit code is asked for even after a
// report, since sys.exit() is no exception that hooks could see.

#include "explain/observed.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "emit/all/frameworks.h"
#include "explain/folders.h"
#include "proc/line_channel.h"
#include "proc/process_tree.h"
#include "table/text.h"

namespace bakeoff::explain {
namespace {

using Json = nlohmann::json;

constexpr int64_t kEndSeconds = 20;  // from a script's end to that of its process
constexpr double kHelloSeconds = 60;
constexpr int kTailLines = 15;

std::string tail_of(const proc::Child& child) {
  return join(table::last_lines(child.log_tail(), kTailLines), "\n");
}

double loss_of(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

std::string own_python_path() {
  const char* ours = std::getenv("PYTHONPATH");
  return ours != nullptr ? ours : "";
}

// What a script finds in its environment without Bakeoff, and what makes its runs alike.
std::map<std::string, std::string> environment_of(const ScriptSpec& spec) {
  std::map<std::string, std::string> all = {{"PYTHONUNBUFFERED", "1"}};
  for (const auto& [name, value] : spec.environment) all[name] = value;
  // What a compiler keeps for the next process does not go with the temporary files of this one.
  std::error_code ignored;
  for (const emit::Framework* framework : emit::frameworks()) {
    const auto& [variable, folder, used] = framework->cache;
    if (variable.empty() || std::getenv(variable.c_str()) != nullptr) continue;
    const fs::path kept = fs::temp_directory_path(ignored) / fmt::format("bakeoff_{}_{}", folder, ::getuid());
    all.emplace(variable, kept.string());
  }
  const std::string own = own_python_path();
  if (const auto set = all.find("PYTHONPATH"); set != all.end() && !own.empty()) set->second += ":" + own;
  return all;
}

// Hooks are set before the script begins, which sees the PYTHONPATH that it would have had.
void add_hooks(std::map<std::string, std::string>& environment, const ScriptSpec& spec) {
  const auto set = environment.find("PYTHONPATH");
  const std::string own = set != environment.end() ? set->second : own_python_path();
  environment["BAKEOFF_OBSERVE"] = spec.runner.string();
  std::string& path = environment["PYTHONPATH"];
  path = (spec.runner / "bakeoff_observe" / "site").string();
  if (own.empty()) return;
  environment["BAKEOFF_OBSERVED_PYTHONPATH"] = own;
  path += ":" + own;
}

const char* word(Watch watch) {
  if (watch == Watch::kLines) return "lines";
  if (watch == Watch::kProfile) return "profile";
  return watch == Watch::kRounds ? "rounds" : "hooks";
}

}  // namespace

double LoopBook::share() const {
  double all = 0;
  for (const auto& [account, part] : accounts) all += part;
  return all;
}

Result<Report> parse_report(const std::string& line) {
  const Json found = parse_json<Json>(line);
  try {
    Report report;
    report.ended = found.at("ended");
    report.kind = found.at("kind");
    report.error = found.value("error", "");
    report.where = found.value("where", "");
    report.started = found.at("started");
    report.begun = found.at("begun");
    report.ns = found.at("ns");
    found.at("marks").get_to(report.marks);
    found.at("waits").get_to(report.waits);
    found.at("epochs").get_to(report.epochs);
    for (const auto& [name, times] : found.at("imports").items())
      report.imports.push_back({name, times.at(0), times.at(1)});
    report.compiles = found.at("compiles");
    report.compile_ns = found.at("compile_ns");
    report.compile_steps = found.value("compile_steps", std::vector<int64_t>{});
    report.collections = found.at("collections");
    report.cpu_ns = found.at("cpu_ns");
    report.peak_rss_bytes = found.at("peak_rss_bytes");
    report.minor_faults = found.value("minor_faults", int64_t{0});
    for (const Json& loss : found.at("losses")) report.losses.push_back(loss_of(loss));
    found.at("thrown").get_to(report.thrown);
    found.at("notes").get_to(report.notes);
    report.facts = found.at("facts");
    report.files = found.value("files", std::map<std::string, int64_t>{});
    for (const Json& one : found.value("lines", Json::array()))
      report.lines.push_back({one.at("line"), one.at("function"), one.at("share"), one.value("eager", 0.0),
                              one.value("input", 0.0), one.value("within", 0.0)});
    for (const Json& one : found.value("constants", Json::array()))
      report.constants.push_back({one.at("function"), one.at("line"), one.at("calls"), one.at("share")});
    report.accounts = found.value("accounts", std::map<std::string, double>{});
    for (const Json& one : found.value("loops", Json::array()))
      report.loops.push_back({one.at("line"), one.at("rounds"), one.at("share"), one.at("traced")});
    for (const Json& one : found.value("ops", Json::array()))
      report.ops.push_back({one.at("name"), one.at("seconds"), one.at("calls")});
    if (const auto at = found.find("hooks"); at != found.end() && at->is_object())
      report.hook_s = at->at("calls_per_step").get<double>() * at->at("seconds_per_call").get<double>();
    for (const Json& one : found.value("books", Json::array()))
      report.books.push_back({one.at("line"), one.at("accounts")});
    if (const auto at = found.find("children"); at != found.end() && !at->empty()) {
      report.children = at->at("processes");
      report.children_running = at->at("running");
    }
    report.input_s = found.value("input_s", 0.0);
    report.conversions = found.value("conversions", Json());
    if (const auto at = found.find("environment"); at != found.end())
      for (const auto& [name, value] : at->items()) report.environment[name] = value;
    return report;
  } catch (const Json::exception& error) {
    return Error{.message = fmt::format("the observed process answered garbage: '{}' ({})",
                                        line.substr(0, 200), error.what())};
  }
}

struct Observed::State {
  std::optional<TemporaryFolder> copy;  // removed after the process has ended
  proc::Child child;
  proc::LineChannel channel;
  Switches switches;
  std::string kind = {};
  bool notebook = false;
  int64_t id = 0;
  State(std::optional<TemporaryFolder> folder, proc::Child started, Switches thrown)
      : copy(std::move(folder)), child(std::move(started)), channel(child), switches(std::move(thrown)) {}
};

Observed::Observed(std::unique_ptr<State> state) : state_(std::move(state)) {}
Observed::Observed(Observed&&) noexcept = default;
Observed::~Observed() {
  if (state_) state_->child.kill(0);
}

Result<Unobserved> unobserved(const ScriptSpec& spec) {
  Unobserved made;
  made.options.argv = {spec.python.string()};
  made.options.argv.insert(made.options.argv.end(), spec.arguments.begin(), spec.arguments.end());
  made.options.env = environment_of(spec);
  made.options.cwd = spec.folder;
  made.options.own_temporary_folder = true;
  if (!spec.in_copy) return made;
  TRY(TemporaryFolder copy, TemporaryFolder::make("run"));
  made.options.cwd = copy.path() / spec.folder.filename();
  CHECK_OK(copy_folder(spec.folder, made.options.cwd));
  for (const auto& [file, text] : spec.texts) CHECK_OK(write_file(made.options.cwd / file, text));
  made.copy.emplace(std::move(copy));
  return made;
}

Result<Observed> Observed::start(const ScriptSpec& spec, const Switches& switches) {
  TRY(Unobserved made, unobserved(spec));
  add_hooks(made.options.env, spec);
  made.options.log_file = spec.log_file;
  TRY(proc::Child child, proc::Child::start(made.options));
  auto state = std::make_unique<State>(std::move(made.copy), std::move(child), switches);
  state->notebook = spec.notebook;
  state->kind = spec.kind;
  const int64_t deadline = monotonic_clock().now_ns() + static_cast<int64_t>(kHelloSeconds * kSecond);
  const auto hello = state->channel.receive(deadline, "start");
  if (!hello) {
    return Error{.message = fmt::format("Python did not start the script: {}\n{}", hello.error().message,
                                        tail_of(state->child)),
                 .remedy = "run the script without Bakeoff; it must start there, too"};
  }
  return Observed(std::move(state));
}

Result<Report> Observed::run(const RunRequest& asked) {
  Json request = {{"id", ++state_->id},
                  {"op", "run"},
                  {"steps", asked.steps},
                  {"seconds", asked.seconds},
                  {"facts", asked.facts}};
  if (asked.watch != Watch::kNothing) request["watch"] = word(asked.watch);
  if (state_->id == 1) {
    request["switches"] = state_->switches;
    request["notebook"] = state_->notebook;
    request["kind"] = state_->kind;
    request["whole"] = asked.whole;
  }
  const double seconds = asked.seconds + asked.patience_s;
  const int64_t deadline = monotonic_clock().now_ns() + static_cast<int64_t>(seconds * kSecond);
  const auto line = state_->channel.exchange(dump(request), deadline, "run");
  if (line) {
    TRY(Report report, parse_report(*line));
    // sys.exit() is no exception that the script's process could report: its code says what it was.
    if (report.ended && report.error.empty()) {
      const auto end = state_->child.wait(monotonic_clock().now_ns() + kEndSeconds * kSecond);
      if (end && end->code > 0) {
        report.error = fmt::format("exit code {}", end->code);
        report.where = "sys.exit";
      }
    }
    return report;
  }
  const auto& failure = state_->channel.failure();
  if (failure && failure->kind == proc::FailureKind::kTimeout) {
    return Error{
        .message = fmt::format("no training step was seen for {:.0f} s", seconds),
        .remedy =
            "a step is optimizer.step(), a batch of fit, or a call of the jitted function that trains; steps "
            "in threads or processes of the script's own are not seen"};
  }
  return Error{.message = fmt::format("the script ended without a report: {}\n{}", line.error().message,
                                      tail_of(state_->child)),
               .where = line.error().where};
}

int64_t Observed::log_bytes() const { return state_->child.log_bytes(); }
Status Observed::freeze() { return state_->child.stop(); }
Status Observed::thaw() { return state_->child.resume(); }

std::string Observed::log_tail() const { return tail_of(state_->child); }

}  // namespace bakeoff::explain
