#include "proc/exit.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>

namespace bakeoff::proc {
namespace {

std::string main_clause(const Exit& exit) {
  if (exit.kind == Exit::Kind::kLost) return "lost";
  if (exit.kind == Exit::Kind::kCode) return fmt::format("exit code {}", exit.code);
  if (exit.asked) return fmt::format("ended by Bakeoff ({})", signal_name(exit.signal));
  return fmt::format("killed by signal {} ({})", exit.signal, signal_name(exit.signal));
}

std::string reason(const Exit& exit) {
  if (exit.kind == Exit::Kind::kLost) return ": its guardian process is gone";
  if (exit.over_limit_bytes > 0) {
    return fmt::format(", out of memory: it used {}, above its limit of {}",
                       bytes_text(exit.over_limit_bytes), bytes_text(exit.memory_limit_bytes));
  }
  if (exit.kind == Exit::Kind::kSignal && exit.signal == SIGKILL && !exit.asked) {
    return exit.out_of_memory ? ", likely out of memory" : ", sent from outside Bakeoff";
  }
  return {};
}

}  // namespace

std::string Exit::text(std::string_view stage) const {
  std::string text = main_clause(*this);
  if (!stage.empty()) text += fmt::format(" in stage {}", stage);
  text += reason(*this);
  if (address_space_limit_bytes > 0 && !ok() && !asked) {
    text += fmt::format(", with its address space limited to {}", bytes_text(address_space_limit_bytes));
  }
  if (private_memory_limit_bytes > 0 && over_limit_bytes == 0 && !ok() && !asked) {
    text += fmt::format(", with its private memory limited to {}", bytes_text(private_memory_limit_bytes));
  }
  if (leftovers > 0) {
    text += fmt::format("; left {} process{} behind (killed)", leftovers, leftovers == 1 ? "" : "es");
  }
  return text;
}

std::string signal_name(int signal) {
  const char* abbreviation = ::sigabbrev_np(signal);
  return abbreviation == nullptr ? fmt::format("signal {}", signal) : fmt::format("SIG{}", abbreviation);
}

std::string bytes_text(int64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= int64_t{1} << 30) return fmt::format("{:.1f} GiB", value / (1 << 30));
  if (bytes >= int64_t{1} << 20) return fmt::format("{:.0f} MiB", value / (1 << 20));
  return fmt::format("{:.0f} KiB", value / (1 << 10));
}

std::string duration_text(int64_t ns) {
  const double seconds = static_cast<double>(ns) / 1e9;
  if (seconds >= 10) return fmt::format("{:.0f} s", seconds);
  if (seconds >= 0.9995) return fmt::format("{:.3g} s", seconds);
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

}  // namespace bakeoff::proc
