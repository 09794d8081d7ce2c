#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <variant>

#include "base/home.h"
#include "cli/console.h"
#include "cli/options.h"
#include "proc/interrupt.h"
#include "proc/launcher.h"

namespace {

using namespace bakeoff::cli;  // NOLINT: one file, one room

struct Runner {
  std::filesystem::path config;
  // Of commands that keep something, or start what is kept.
  template <typename Command>
  static int at_home(const Command& command) {
    const auto home = bakeoff::check_home();
    return home ? command() : fail(home.error());
  }
  int operator()(const RunOptions& o) const {
    return at_home([&] { return run(o, config); });
  }
  int operator()(const SuiteOptions& o) const {
    if (!o.report.empty()) return suite(o, config);
    return at_home([&] { return suite(o, config); });
  }
  int operator()(const TuneOptions& o) const {
    return at_home([&] { return tune(o, config); });
  }
  int operator()(const SelfTestCommand& o) const {
    return at_home([&] { return selftest(o, config); });
  }
  int operator()(const CalibrateCommand& o) const {
    return at_home([&] { return calibrate(o, config); });
  }
  int operator()(const ParityOptions& o) const {
    return at_home([&] { return parity(o, config); });
  }
  int operator()(const CheckOptions& o) const {
    return at_home([&] { return check(o, config); });
  }
  int operator()(const ExplainOptions& o) const {
    return at_home([&] { return explain(o, config); });
  }
  int operator()(const GateOptions& o) const {
    return at_home([&] { return gate(o, config); });
  }
  int operator()(const CompareOptions& o) const { return compare(o); }
  int operator()(const BisectOptions& o) const {
    return at_home([&] { return bisect(o, config); });
  }
  int operator()(const EmitOptions& o) const {
    return at_home([&] { return emit(o); });
  }
  int operator()(const ExecOptions& o) const {
    return at_home([&] { return exec(o, config); });
  }
  int operator()(const InitOptions& o) const { return init(o); }
  int operator()(const RecipesOptions& o) const { return recipes(o); }
  int operator()(const ShowOptions& o) const { return show(o); }
  int operator()(const OpsOptions& o) const { return ops(o); }
  int operator()(const RecipeOptions& o) const { return recipe(o); }
  int operator()(const EnvOptions& o) const {
    return at_home([&] { return env(o, config); });
  }
  int operator()(const DataOptions& o) const {
    return at_home([&] { return data(o); });
  }
  int operator()(const ImportOptions& o) const {
    return at_home([&] { return import(o, config); });
  }
  int operator()(const TranslateOptions& o) const {
    return at_home([&] { return translate(o, config); });
  }
  int operator()(const MachineOptions& o) const {
    return at_home([&] { return machine(o, config); });
  }
  int operator()(const ReportOptions& o) const { return report(o); }
  int operator()(const ExportOptions& o) const { return export_run(o); }
  int operator()(const StoreOptions& o) const {
    return at_home([&] { return store(o); });
  }
  int operator()(const HistoryOptions& o) const {
    return at_home([&] { return history(o); });
  }
};

int run_command(int argc, char** argv) {
  const auto parsed = parse_command_line(argc, argv);
  if (const int* code = std::get_if<int>(&parsed)) return *code;
  const auto& line = std::get<CommandLine>(parsed);
  bakeoff::proc::install_interrupt_handlers();
  return finish(std::visit(Runner{line.config}, line.command));
}

}  // namespace

// Expected failures are Results. What is thrown all the same ends with a message, too.
int main(int argc, char** argv) {
  try {
    return run_command(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail(
        {.message = "out of memory", .remedy = "free some memory, or raise the limit of this process"});
  } catch (const std::filesystem::filesystem_error& thrown) {
    // A name that is too long, links in a circle, a folder that may not be looked into.
    return fail(
        {.message = fmt::format("cannot look at '{}': {}", thrown.path1().string(), thrown.code().message()),
         .remedy = "name another file, or make this one accessible"});
  } catch (const std::exception& thrown) {
    return fail({.message = std::string("internal error: ") + thrown.what(),
                 .remedy = "this is a defect of bakeoff: please report it with the command and its input"});
  }
}
