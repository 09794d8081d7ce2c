#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/texts.h"
#include "fleet/engine.h"
#include "proc/interrupt.h"
#include "proc/run.h"

extern char** environ;  // NOLINT: the environment has no header

// Hosts by ssh, or this machine. On each host one process works on the blocks of a job, one after another; it takes a
// block that none of the others has taken (Board::take), so a slow host takes fewer. The process outlives us and the
// connection. It is known again by its number and the run directory in its command line: numbers are used again.

namespace bakeoff::fleet {
namespace {

constexpr int64_t kPatience = 30 * kSecond;  // for an answer of a host
constexpr const char* kHere = "localhost";

class Hosts : public Engine {
 public:
  explicit Hosts(const Board& board) : board_(board) {}

  Status check() const override {
    for (const std::string& host : hosts()) {
      const auto there = on(host, "test -x " + detail::quoted(board_.settings().program) + " && test -d " +
                                      detail::quoted(board_.run().string()) + " && echo there");
      if (!there)
        return Error{.message = fmt::format("host '{}' cannot be reached: {}", host, there.error().message),
                     .where = "--hosts",
                     .remedy = fmt::format("`{} {} true` has to work without a password",
                                           join(board_.settings().ssh, " "), host)};
      if (trimmed(*there) != "there")
        return Error{.message = fmt::format("host '{}' does not see {} or {}", host,
                                            board_.settings().program, board_.run().string()),
                     .where = "--hosts",
                     .remedy = "both have to lie in a folder that all hosts share"};
    }
    return Done{};
  }

  Status submit(Job& job, const std::vector<std::string>& avoid) const override {
    const std::string work =
        detail::on_node(board_, {"work", board_.run().string(), "--job", std::to_string(job.number)});
    std::string failures;
    for (const std::string& host : hosts()) {
      if (std::ranges::find(avoid, host) != avoid.end()) continue;
      const auto pid = start(host, work, job.number);
      if (pid)
        job.ids.push_back(fmt::format("{} {}", host, *pid));
      else
        failures += fmt::format("; {}: {}", host, pid.error().message);
    }
    if (job.ids.empty())
      return Error{.message = "no host could start" + failures,
                   .where = "--hosts",
                   .remedy = "`bakeoff fleet submit` tries again"};
    return Done{};
  }

  Result<std::map<int, Queued>> queued(const Job& job) const override {
    std::vector<std::string> alive;
    for (const std::string& id : job.ids) {
      TRY(const bool lives, is_alive(id));
      if (lives) alive.push_back(split(id, " ").front());
    }
    std::map<int, Queued> found;
    if (alive.empty()) return found;
    for (const int block : job.blocks) {
      if (board_.settled(block)) continue;
      const std::string node = board_.taken_by(block, job.number);
      if (node.empty()) found[block] = {.why = "the hosts run other blocks"};
      // A node's name need not be what ssh calls it: with one process left, what was taken may run there.
      else if (!failed_in(block, job.number))
        found[block] = {.running = true, .node = node};
    }
    return found;
  }

  std::string why_gone(const Job& job, int block) const override {
    const std::string node = board_.taken_by(block, job.number);
    return node.empty() ? "no process took it" : "its process on " + node + " ended without a result";
  }

  Status cancel(const Job& job) const override {
    std::string left;
    for (const std::string& id : job.ids) {
      const std::vector<std::string> parts = split(id, " ");
      for (const char* signal : {"TERM", "KILL"}) {
        TRY(const bool lives, is_alive(id));
        if (!lives) break;
        TRY(const std::string ignored,
            on(parts.front(), fmt::format("kill -{} {} || true", signal, parts.back())));
        (void)ignored;
        const int64_t begin = monotonic_clock().now_ns();
        while (seconds_since(begin) < 20 && !proc::interrupted()) {
          TRY(const bool still, is_alive(id));
          if (!still) break;
          ::usleep(300'000);
        }
      }
      TRY(const bool lives, is_alive(id));
      if (lives) left += (left.empty() ? "" : ", ") + id;
    }
    if (left.empty()) return Done{};
    return Error{
        .message = "still running: " + left, .where = {}, .remedy = "`bakeoff fleet cancel` tries again"};
  }

 private:
  bool remote() const { return board_.settings().engine == "ssh"; }
  std::vector<std::string> hosts() const {
    return remote() ? board_.settings().hosts : std::vector<std::string>{kHere};
  }

  bool failed_in(int block, int job) const {
    return std::ranges::any_of(board_.failures(block), [&](const FailedAttempt& f) { return f.job == job; });
  }

  // What a shell there prints.
  Result<std::string> on(const std::string& host, const std::string& script) const {
    std::vector<std::string> argv = {"sh", "-c", script};
    if (remote()) {
      argv = board_.settings().ssh;
      for (const char* option : {"-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}) argv.emplace_back(option);
      argv.push_back(host);
      argv.push_back(script);
    }
    TRY(const auto done, proc::run_command({.child = {.argv = argv}, .timeout_ns = kPatience}));
    // ssh ends with 255 where it does not get there; another number is the script's.
    if (done.timed_out || (remote() && done.exit.code == 255))
      return Error{.message = fmt::format("{}: {}", done.text(), trimmed(done.output_tail))};
    return done.output_tail;
  }

  // The number of a process that outlives us.
  Result<int> start(const std::string& host, const std::string& work, int job) const {
    const std::string log = (board_.logs() / fmt::format("job{}-{}.log", job, host)).string();
    const std::string script =
        fmt::format("cd {} && {{ setsid nohup env {} < /dev/null >> {} 2>&1 & echo $!; }}",
                    detail::quoted(board_.run().string()), work, detail::quoted(log));
    if (!remote()) return start_here(work, log);
    TRY(const std::string text, on(host, script));
    const std::vector<std::string> lines = lines_of(trimmed(text));
    const int pid = lines.empty() ? 0 : std::atoi(lines.back().c_str());
    if (pid <= 0) return Error{.message = "no process was started: " + std::string(trimmed(text))};
    return pid;
  }

  // Not by run_command: what that starts ends with us.
  static Result<int> start_here(const std::string& work, const std::string& log) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::posix_spawn_file_actions_adddup2(&files, 1, 2);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    std::string script = "exec env " + work, shell = "sh", option = "-c";
    char* argv[] = {shell.data(), option.data(), script.data(), nullptr};
    pid_t pid = 0;
    const int error = ::posix_spawn(&pid, "/bin/sh", &files, &attributes, argv, environ);
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
    if (error != 0) return Error{.message = fmt::format("cannot start a process: {}", std::strerror(error))};
    return pid;
  }

  Result<bool> is_alive(const std::string& id) const {
    const std::vector<std::string> parts = split(id, " ");
    TRY(const std::string line,
        on(parts.front(), "tr '\\0' ' ' < /proc/" + parts.back() + "/cmdline 2> /dev/null"));
    return line.find(board_.run().string()) != std::string::npos;
  }

  const Board& board_;
};

}  // namespace

std::unique_ptr<Engine> detail::hosts_engine(const Board& board) { return std::make_unique<Hosts>(board); }

}  // namespace bakeoff::fleet
