#include "proc/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "base/texts.h"
#include "proc/child_state.h"
#include "proc/launcher.h"

extern char** environ;  // NOLINT: the environment has no header

namespace bakeoff::proc {
namespace {

constexpr int64_t kStartPatience = 30 * kSecond;   // fork and exec on a loaded machine
constexpr int64_t kBurialPatience = 15 * kSecond;  // beyond the guardian's own

int64_t now() { return monotonic_clock().now_ns(); }

std::map<std::string, std::string> environment_for(const ChildOptions& options) {
  std::map<std::string, std::string> env;
  for (char** entry = environ; entry != nullptr && *entry != nullptr && !options.env_clear; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=', 1);
    if (equals != std::string::npos) env.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const std::string& name : options.env_remove) env.erase(name);
  for (const auto& [name, value] : options.env) env.insert_or_assign(name, value);
  return env;
}

Status check(const ChildOptions& options) {
  if (options.argv.empty()) return Error{.message = "no program to start: argv is empty"};
  for (int cpu : options.cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE) return Error{.message = fmt::format("there is no processor {}", cpu)};
  }
  return Done{};
}

Result<LaunchOrder> make_order(const ChildOptions& options) {
  const std::map<std::string, std::string> env = environment_for(options);
  const auto path = env.find("PATH");
  TRY(const fs::path program,
      find_program(options.argv[0], path == env.end() ? "/usr/local/bin:/usr/bin:/bin" : path->second));
  std::error_code error;
  LaunchOrder order{
      .program = program,
      .argv = options.argv,
      .cwd = options.cwd.empty() ? fs::current_path(error) : options.cwd,
      .cpus = options.cpus,
      .nice = options.nice,
      .randomise_addresses = options.randomise_addresses,
      .huge_pages = options.huge_pages,
      .address_space_limit_bytes = options.address_space_limit_bytes,
      .private_memory_limit_bytes = options.private_memory_limit_bytes,
      .memory_limit_bytes = options.memory_limit_bytes,
      .log_file_cap = options.log_file_bytes,
      .has_control = options.control,
      .has_log_file = !options.log_file.empty(),
      .has_output = options.output_to_us,
      .own_temporary_folder = options.own_temporary_folder,
  };
  for (const auto& [name, value] : env) order.env.push_back(fmt::format("{}={}", name, value));
  return order;
}

Error start_error(const ChildOptions& options, const LaunchOrder& order, const Report& report) {
  const std::string what = [&]() -> std::string {
    switch (report.step) {
      case StartStep::kFork:
        return "cannot fork";
      case StartStep::kFds:
        return "cannot arrange the descriptors";
      case StartStep::kCpus:
        return fmt::format("cannot run on processors {}", join(options.cpus, ","));
      case StartStep::kNice:
        return fmt::format("cannot set nice {}", options.nice);
      case StartStep::kPersonality:
        return "cannot turn address randomisation off";
      case StartStep::kHugePages:
        return "cannot turn transparent huge pages off";
      case StartStep::kLimit:
        return "cannot limit its memory";
      case StartStep::kFolder:
        return fmt::format("cannot enter folder '{}'", order.cwd);
      case StartStep::kExec:
        return "cannot execute it";
    }
    return "unknown failure";
  }();
  return system_error(fmt::format("cannot start '{}': {}", options.argv[0], what), report.error);
}

Result<UniqueFd> open_log(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return system_error(fmt::format("cannot write the log '{}'", path.string()), errno);
  return fd;
}

}  // namespace

Result<Child> Child::start(const ChildOptions& options) {
  CHECK_OK(check(options));
  TRY(const LaunchOrder order, make_order(options));
  TRY(LogTail tail, LogTail::create(options.log_tail_bytes));
  auto state = std::make_unique<ChildState>(std::move(tail));
  state->memory_limit_bytes = options.memory_limit_bytes;
  state->address_space_limit_bytes = options.address_space_limit_bytes;
  state->private_memory_limit_bytes = options.private_memory_limit_bytes;
  LaunchFds fds;
  TRY(auto control, make_socket_pair());
  state->control = std::move(control.first);
  fds.control = std::move(control.second);
  fds.tail = UniqueFd(::fcntl(state->tail.fd(), F_DUPFD_CLOEXEC, 3));
  if (options.control) {
    TRY(Pipe requests, make_pipe());
    TRY(Pipe answers, make_pipe());
    CHECK_OK(set_nonblocking(requests.write.get()));
    CHECK_OK(set_nonblocking(answers.read.get()));
    state->request = std::move(requests.write);
    state->answer = std::move(answers.read);
    fds.request = std::move(requests.read);
    fds.answer = std::move(answers.write);
  }
  if (order.has_log_file) {
    TRY(fds.log_file, open_log(options.log_file));
  }
  if (order.has_output) {
    TRY(Pipe output, make_pipe());
    CHECK_OK(set_nonblocking(output.read.get()));
    state->output = std::move(output.read);
    fds.output = std::move(output.write);
  }
  CHECK_OK(launch(order, std::move(fds)));
  const std::optional<Report> report = state->next_report(now() + kStartPatience);
  if (!report || report->kind == ReportKind::kExited) {
    return Error{.message = fmt::format("cannot start '{}': its guardian does not answer", options.argv[0])};
  }
  if (report->kind == ReportKind::kNotStarted) return start_error(options, order, *report);
  state->pid = report->pid;
  return Child(std::move(state));
}

Child::Child(std::unique_ptr<ChildState> state) : state_(std::move(state)) {}
Child::Child(Child&&) noexcept = default;

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    if (state_) kill();
    state_ = std::move(other.state_);
  }
  return *this;
}

Child::~Child() {
  if (state_) kill();
}

pid_t Child::pid() const { return state_->pid; }
bool Child::stopped() const { return state_->stopped; }
int Child::request_fd() const { return state_->request.get(); }
int Child::answer_fd() const { return state_->answer.get(); }
int Child::exit_fd() const { return state_->control.get(); }
int Child::output_fd() const { return state_->output.get(); }
std::string Child::log_tail() const { return state_->tail.text(); }
int64_t Child::log_bytes() const { return state_->tail.total_bytes(); }

Status Child::stop() { return state_->freeze(true); }
Status Child::resume() { return state_->freeze(false); }

std::optional<Exit> Child::exit() const {
  state_->look();
  return state_->exit;
}

std::optional<Exit> Child::wait(int64_t deadline_ns) const {
  state_->await_end(deadline_ns);
  return state_->exit;
}

void Child::begin_kill(int64_t grace_ns) {
  state_->look();
  if (state_->exit) return;
  state_->send({.kind = CommandKind::kKill, .grace_ns = grace_ns});
  state_->told_to_end = true;
}

Exit Child::kill(int64_t grace_ns) {
  begin_kill(grace_ns);
  state_->await_end(now() + grace_ns + kBurialPatience);
  return state_->exit.value_or(Exit{});
}

Result<fs::path> find_program(const std::string& program, const std::string& path) {
  std::error_code error;
  if (program.find('/') != std::string::npos) {
    const fs::path absolute = fs::absolute(program, error);
    if (::access(absolute.c_str(), F_OK) == 0) return absolute;
    return Error{.message = fmt::format("there is no program '{}'", program)};
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find(':', begin), path.size());
    const fs::path candidate = fs::absolute(fs::path(path.substr(begin, end - begin)) / program, error);
    if (!program.empty() && fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    begin = end + 1;
  }
  return Error{.message = fmt::format("there is no program '{}' in the PATH", program)};
}

}  // namespace bakeoff::proc
