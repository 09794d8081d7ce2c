#include "proc/exit.h"

#include <gtest/gtest.h>

#include <csignal>

namespace bakeoff::proc {
namespace {

TEST(Exit, SaysInWordsHowAProcessEnded) {
  using Kind = Exit::Kind;
  const struct {
    Exit exit;
    const char* text;
  } cases[] = {
      {{.kind = Kind::kCode}, "exit code 0"},
      {{.kind = Kind::kCode, .code = 3}, "exit code 3"},
      {{.kind = Kind::kSignal, .signal = SIGSEGV}, "killed by signal 11 (SIGSEGV)"},
      {{.kind = Kind::kSignal, .signal = SIGKILL}, "killed by signal 9 (SIGKILL), sent from outside Bakeoff"},
      {{.kind = Kind::kSignal, .signal = SIGKILL, .out_of_memory = true},
       "killed by signal 9 (SIGKILL), likely out of memory"},
      {{.kind = Kind::kSignal, .signal = SIGTERM, .asked = true}, "ended by Bakeoff (SIGTERM)"},
      {{.kind = Kind::kSignal,
        .signal = SIGKILL,
        .over_limit_bytes = int64_t{3} << 29,
        .memory_limit_bytes = int64_t{1} << 30},
       "killed by signal 9 (SIGKILL), out of memory: it used 1.5 GiB, above its limit of 1.0 GiB"},
      {{.kind = Kind::kCode, .code = 1, .address_space_limit_bytes = int64_t{512} << 20},
       "exit code 1, with its address space limited to 512 MiB"},
      {{.kind = Kind::kSignal, .signal = SIGABRT, .private_memory_limit_bytes = int64_t{1} << 30},
       "killed by signal 6 (SIGABRT), with its private memory limited to 1.0 GiB"},
      {{.kind = Kind::kCode, .leftovers = 1}, "exit code 0; left 1 process behind (killed)"},
      {{.kind = Kind::kCode, .leftovers = 2}, "exit code 0; left 2 processes behind (killed)"},
      {{}, "lost: its guardian process is gone"},
  };
  for (const auto& c : cases) EXPECT_EQ(c.exit.text(), c.text);
}

TEST(Exit, NamesTheStage) {
  const Exit exit{.kind = Exit::Kind::kSignal, .signal = SIGKILL, .out_of_memory = true, .leftovers = 1};
  EXPECT_EQ(
      exit.text("run"),
      "killed by signal 9 (SIGKILL) in stage run, likely out of memory; left 1 process behind (killed)");
}

TEST(Exit, NamesDurationsAndSizes) {
  EXPECT_EQ(duration_text(30'000'000'000), "30 s");
  EXPECT_EQ(duration_text(1'500'000'000), "1.5 s");
  EXPECT_EQ(duration_text(999'999'000), "1 s");
  EXPECT_EQ(duration_text(20'000'000), "20 ms");
  EXPECT_EQ(bytes_text(17 << 10), "17 KiB");
  EXPECT_EQ(signal_name(SIGUSR1), "SIGUSR1");
  EXPECT_EQ(signal_name(64), "signal 64");
}

}  // namespace
}  // namespace bakeoff::proc
