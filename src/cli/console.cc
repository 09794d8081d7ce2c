#include "cli/console.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "proc/interrupt.h"
#include "report/progress.h"
#include "table/numbers.h"
#include "table/text.h"

namespace bakeoff::cli {
namespace {

report::ProgressState shown(const Happening& now) {
  return {.stage = now.stage,
          .detail = now.detail,
          .done = now.done,
          .total = now.total,
          .heat = now.heat,
          .left_s = now.left_s,
          .rest_s = {},
          .heat_left_s = now.heat_left_s,
          .leader = now.leader,
          .leader_ms = now.leader_ms,
          .survivors = now.survivors,
          .contenders = now.contenders,
          .failed = now.failed,
          .unproven = now.unproven};
}

int print_error = 0;  // errno of the first print that failed

int columns_of(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* text = std::getenv("COLUMNS"); text != nullptr && std::atoi(text) > 20)
    return std::atoi(text);
  return 100;
}

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

// A terminal that understands escape sequences.
bool is_able_terminal(int fd) { return isatty(fd) == 1 && variable("TERM") != "dumb"; }

bool takes_colour(int fd) {
  if (!variable("NO_COLOR").empty()) return false;
  const std::string_view forced = variable("CLICOLOR_FORCE");
  return (!forced.empty() && forced != "0") || is_able_terminal(fd);
}

}  // namespace

int fail(const Error& error) {
  if (proc::interrupted()) {
    note("bakeoff: interrupted");
    return kInterrupted;
  }
  note("bakeoff: " + error.text());
  return kBadInput;
}

void note(std::string_view line) { std::fprintf(stderr, "%s\n", table::for_screen(line, false).c_str()); }

void print(const std::string& finished) {
  const std::string text = table::for_screen(finished, output_has_colour());
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if ((!written || std::fflush(stdout) != 0) && print_error == 0) print_error = errno;
}

int finish(int code) {
  // As a shell tells of a program that a signal ended: 130 after Ctrl-C, 143 after SIGTERM.
  if (code == kInterrupted && proc::interrupted()) code = 128 + proc::interrupt_signal();
  if (print_error == 0) return code;
  note(std::string("bakeoff: cannot write to standard output: ") + std::strerror(print_error));
  return kBadInput;
}

int output_width() { return columns_of(STDOUT_FILENO); }
bool output_has_colour() { return takes_colour(STDOUT_FILENO); }

std::string two_columns(const std::string& head, int column, const std::string& text) {
  constexpr int kLeastText = 30;
  const int width = output_width();
  if (width < column + kLeastText) {
    const std::string above = table::paragraph(head, width);
    return (above.empty() ? "" : above + "\n") + table::paragraph(text, width, "  ", "  ") + "\n";
  }
  return table::paragraph(text, width, table::pad_right(head, column - 1) + " ",
                          std::string(static_cast<size_t>(column), ' ')) +
         "\n";
}

std::string longest_text(double seconds) {
  return fmt::format("this takes at most {}, less where it is decided earlier",
                     table::duration(1e3 * seconds));
}

struct ConsoleProgress::State {
  bool terminal = is_able_terminal(STDERR_FILENO);
  bool colour = terminal && takes_colour(STDERR_FILENO);
  bool drawn = false;
  int frame = 0;
  TimeBudget time = TimeBudget();
  report::ProgressState last;
  std::optional<TimeBudget> expected;  // what the race takes from its last heat on, by its standing

  void clear() {
    if (drawn) std::fputs("\r\x1b[K", stderr);
    drawn = false;
  }
  void line(const std::string& text) {
    clear();
    std::fprintf(stderr, "%s\n", table::for_screen(text, colour).c_str());
  }
  // After a heat. A log has this one line for it: the next heat's beginning is no news.
  void stand(const report::ProgressState& now, const Standing& standing) {
    line(report::standing_line(now, standing, terminal ? columns_of(STDERR_FILENO) - 1 : 0, colour));
    last = now;
    ++last.heat;
    expected = standing.to_go_s ? std::optional<TimeBudget>(*standing.to_go_s) : std::nullopt;
  }
  void show(report::ProgressState now) {
    now.elapsed_s = time.spent_s();
    if (expected && now.heat > 0) now.rest_s = expected->left_s();
    if (!now.left_s && std::isfinite(time.seconds())) now.left_s = time.left_s();
    if (terminal) {
      const std::string shown = report::progress_line(now, columns_of(STDERR_FILENO) - 1, colour, frame++);
      std::fprintf(stderr, "\r\x1b[K%s", table::for_screen(shown, colour).c_str());
      std::fflush(stderr);
      drawn = true;
    } else {
      // A log wants a line a heat, not one for each burst.
      if (now.heat > 0) now.done = now.total = 0, now.detail.clear();
      if (!report::worth_a_line(last, now)) return;
      note(report::progress_text(now));
      last = now;
    }
  }
};

ConsoleProgress::ConsoleProgress() : state_(new State) {}
ConsoleProgress::~ConsoleProgress() {
  state_->clear();
  std::fflush(stderr);
  delete state_;
}

Progress ConsoleProgress::lines() {
  return [state = state_](const std::string& text) { state->line(text); };
}

Watch ConsoleProgress::race() {
  return [state = state_](const Happening& now) {
    if (!now.remark.empty())
      state->line(now.remark);
    else if (now.standing)
      state->stand(shown(now), *now.standing);
    else
      state->show(shown(now));
  };
}

run::Teller ConsoleProgress::teller() {
  return {.line = lines(), .watch = race(), .time = [state = state_](const TimeBudget& time) {
            state->time = time;
          }};
}

}  // namespace bakeoff::cli
