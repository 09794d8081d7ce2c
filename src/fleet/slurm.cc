#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "fleet/engine.h"
#include "proc/interrupt.h"
#include "proc/run.h"

// Slurm by its commands: sbatch, squeue, scontrol, scancel. A wave is one job array, whose task I runs the I-th block of
// the job. Jobs are known by their ids: a name may be a neighbour's as well. Only where sbatch was interrupted before it
// told the id is a job known by its name, which therefore has a hash of the run and of the time in it. A cancelled job is
// over only when its tasks have left the queue. sacct is not asked: many sites have no accounting.

namespace bakeoff::fleet {
namespace {

constexpr int64_t kController = 60 * kSecond;  // the longest wait for an answer
constexpr double kUnderWay = 2;                // seconds in which a job that sbatch has sent is in the queue
constexpr int kLargestArray = 1000;            // tasks; sites allow 1,001 unless they say otherwise

// What the command printed. Error: it failed, with its words.
Result<std::string> ask(const std::vector<std::string>& argv, const std::string& remedy) {
  const auto done = proc::run_command({.child = {.argv = argv}, .timeout_ns = kController});
  if (!done) {
    Error error = done.error();
    if (error.remedy.empty()) error.remedy = remedy;
    return error;
  }
  if (!done->ok())
    return Error{.message = fmt::format("{}: {}: {}", argv.front(), done->text(), trimmed(done->output_tail)),
                 .where = {},
                 .remedy = remedy};
  return done->output_tail;
}

constexpr const char* kIsItThere =
    "run it where sbatch and squeue work (`sinfo` shows the partitions), or plan with --engine ssh or local";

std::string field(const std::string& text, const std::string& name) {
  const size_t at = text.find(name + "=");
  if (at == std::string::npos) return "";
  const size_t begin = at + name.size() + 1;
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

class Slurm : public Engine {
 public:
  explicit Slurm(const Board& board) : board_(board) {}

  Status check() const override {
    TRY(const std::string text, ask({"sinfo", "--noheader", "--format=%R"}, kIsItThere));
    const std::string& wanted = board_.settings().partition;
    std::vector<std::string> partitions = split_trimmed(trimmed(text), "\n");
    std::ranges::sort(partitions);
    partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
    if (!wanted.empty() && std::ranges::find(partitions, wanted) == partitions.end())
      return Error{.message = fmt::format("Slurm has no partition '{}'", wanted),
                   .where = "--partition",
                   .remedy = "there are: " + join(partitions, ", ")};
    return Done{};
  }

  size_t most() const override {
    const auto text = ask({"scontrol", "show", "config"}, kIsItThere);
    if (!text) return kLargestArray;
    for (const std::string& line : lines_of(*text))
      if (line.starts_with("MaxArraySize"))
        return static_cast<size_t>(
            std::clamp(std::atoi(line.substr(line.find('=') + 1).c_str()), 1, kLargestArray));
    return kLargestArray;
  }

  Status submit(Job& job, const std::vector<std::string>& avoid) const override {
    const Settings& settings = board_.settings();
    std::vector<std::string> argv = {
        "sbatch",
        "--parsable",
        "--nodes=1",
        "--ntasks=1",
        "--no-requeue",
        fmt::format("--array=0-{}", job.blocks.size() - 1),
        "--job-name=" + name_of(job),
        fmt::format("--time={}", std::max(1, static_cast<int>(std::ceil(job.minutes)))),
        "--chdir=" + board_.run().string(),
        "--output=" + (board_.logs() / "%A_%a.log").string()};
    if (settings.exclusive) argv.emplace_back("--exclusive");
    if (!settings.partition.empty()) argv.push_back("--partition=" + settings.partition);
    if (!settings.account.empty()) argv.push_back("--account=" + settings.account);
    if (!avoid.empty()) argv.push_back("--exclude=" + join(avoid, ","));
    argv.insert(argv.end(), settings.sbatch.begin(), settings.sbatch.end());
    const std::string command =
        detail::on_node(board_, {"block", board_.run().string(), "--job", std::to_string(job.number)});
    argv.push_back("--wrap=export " + command.substr(0, command.find(' ')) + "; exec" +
                   command.substr(command.find(' ')) + " --task \"$SLURM_ARRAY_TASK_ID\"");
    TRY(const std::string text,
        ask(argv, "`bakeoff fleet submit` tries again; what was wrong with the options is in Slurm's words"));
    const std::vector<std::string> lines = lines_of(trimmed(text));
    const std::string id = split(lines.empty() ? "" : lines.back(), ";").front();  // "12;cluster"
    if (id.empty() || !std::ranges::all_of(id, [](unsigned char c) { return std::isdigit(c) != 0; }))
      return Error{.message = fmt::format("sbatch answered without a job id: {}", trimmed(text))};
    job.ids = {id};
    return Done{};
  }

  Result<std::map<int, Queued>> queued(const Job& job) const override {
    std::map<int, Queued> found;
    for (const std::string& which : selections(job, "--jobs=")) {
      const auto text = ask({"squeue", "--noheader", "--array", which, "--format=%K|%T|%N|%r"},
                            "the controller does not answer; nothing is lost: ask again later");
      if (!text && text.error().message.find("Invalid job id") != std::string::npos) continue;
      if (!text) return text.error();
      for (const std::string& line : lines_of(trimmed(*text))) {
        const std::vector<std::string> parts = split_trimmed(line, "|");
        if (parts.size() != 4) continue;
        const auto task = static_cast<size_t>(std::atoi(parts[0].c_str()));
        if (task >= job.blocks.size()) continue;
        const bool waits = parts[1] == "PENDING" || parts[1] == "CONFIGURING";
        found[job.blocks[task]] = {.running = !waits, .node = parts[2], .why = waits ? parts[3] : ""};
      }
    }
    return found;
  }

  // The controller forgets a job some minutes after its end.
  std::string why_gone(const Job& job, int block) const override {
    const auto at = std::ranges::find(job.blocks, block) - job.blocks.begin();
    for (const std::string& id : job.ids) {
      const auto text = ask({"scontrol", "--oneliner", "show", "job", fmt::format("{}_{}", id, at)}, "");
      if (!text) continue;
      const std::string state = field(*text, "JobState"), node = field(*text, "NodeList");
      if (!state.empty() && state != "COMPLETED")
        return fmt::format("Slurm job {}_{}{}: {}{}", id, at, node.empty() ? "" : " on " + node, state,
                           state == "TIMEOUT" ? fmt::format(" after {:g} minutes", job.minutes) : "");
    }
    return "";
  }

  Status cancel(const Job& job) const override {
    CHECK_OK(end(job));
    const int64_t begin = monotonic_clock().now_ns();
    while (seconds_since(begin) < 120 && !proc::interrupted()) {
      TRY(const auto left, queued(job));
      const bool known = !job.ids.empty();  // else it may reach the controller while we ask
      if (left.empty() && (known || seconds_since(begin) > kUnderWay)) return Done{};
      ::usleep(500'000);
      if (!known) CHECK_OK(end(job));
    }
    return Error{
        .message = fmt::format("job {} is cancelled, but not all of it has left the queue", job.number),
        .where = {},
        .remedy = "`squeue` shows what is left; `bakeoff fleet cancel` waits again"};
  }

 private:
  std::string name_of(const Job& job) const {
    return fmt::format("bakeoff-{}-{}-{}", board_.run().filename().string(), job.number,
                       sha256(board_.run().string() + "\n" + job.submitted).substr(0, 12));
  }

  // What selects the job in squeue and scancel.
  std::vector<std::string> selections(const Job& job, const std::string& option) const {
    std::vector<std::string> all;
    for (const std::string& id : job.ids) all.push_back(option + id);
    if (all.empty()) all.push_back("--name=" + name_of(job));
    return all;
  }

  Status end(const Job& job) const {
    for (const std::string& which : selections(job, "")) {
      const auto done = ask({"scancel", which}, "`bakeoff fleet cancel` tries again");
      if (!done && done.error().message.find("Invalid job id") == std::string::npos) return done.error();
    }
    return Done{};
  }

  const Board& board_;
};

}  // namespace

std::unique_ptr<Engine> detail::slurm_engine(const Board& board) { return std::make_unique<Slurm>(board); }

}  // namespace bakeoff::fleet
