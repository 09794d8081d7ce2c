#pragma once

// Why a contender ended early, as a plain value.

#include <string>
#include <string_view>

namespace bakeoff {

// The part of a contender's run in which it failed.
enum class Stage {
  kOther,        // a record has a word that this version does not know
  kNone,         // it did not fail; the word is empty
  kEnvironment,  // its environment is missing, or the run ended before its turn
  kEmit,         // writing its script
  kControls,     // the machine does not grant a control
  kCompile,      // compiling a C++ contender
  kStart,        // process start to hello
  kImport,
  kBuild,
  kPrecision,  // the device lacks its precision
  kParity,
  kLosses,   // the losses of the gate
  kBatches,  // the batch hashes of the gate
  kRates,    // the learning rates of the gate
  kRestore,  // loading the initial weights again
  kFirstStep,
  kWarmUp,
  kRun,
  kNudge,
  kAudit,
  kState,  // writing its parameters
  kServe,  // the latency study
  kTransfer,
  kMemory,
  kClose,
};

// What ended a contender, where Bakeoff itself saw it.
enum class Cause {
  kOther,     // something else: the reason says what
  kLimit,     // it used more memory than its limit, and was stopped
  kKilled,    // the kernel killed it, likely because memory ran out
  kTime,      // no answer before the deadline
  kProtocol,  // the worker does not know the request
};

// Their words in records and tables, and back; a word that this version does not know is kOther.
std::string_view name(Stage);  // "environment", "first step", "warmup"
std::string_view name(Cause);  // "limit", "time"
Stage stage_named(std::string_view word);
Cause cause_named(std::string_view word);

// A failure is a record; it never ends the race.
struct Failure {
  Stage stage = Stage::kNone;
  std::string reason = {};    // one line
  std::string log_tail = {};  // last lines that the worker printed
  Cause cause = Cause::kOther;
  std::string text() const { return std::string(name(stage)) + ": " + reason; }
  bool operator==(const Failure&) const = default;
};

}  // namespace bakeoff
