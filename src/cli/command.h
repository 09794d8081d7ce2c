#pragma once

// A command of `bakeoff` is one value. It is defined in the file that carries it out, with the options that it has:
//
//   struct ShowOptions { std::string what = {}; };
//
//   Action add_show(CLI::App& sub) {
//     const auto options = std::make_shared<ShowOptions>();
//     sub.add_option("what", options->what, "workload, .ir file or recipe")->required();
//     return [options](const Invocation&) { return show(*options); };
//   }
//
//   const Command kShow = {"show", "Show a workload", "bakeoff show mnist_cnn", add_show, Home::kUnused};
//
// It is declared at the end of this header, and has a place in the table of command_line.cc.

#include <CLI/CLI.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace bakeoff::cli {

// What a command line says beside the options of its command.
struct Invocation {
  std::filesystem::path config = {};   // --config
  std::vector<std::string> tail = {};  // as Command::tail says
};

// Carries a command out. Returns the exit code: 0 done, 1 the answer is no, 2 bad input, 3 no verdict (the host was
// busy), 130 Ctrl-C.
using Action = std::function<int(const Invocation&)>;

enum class Home {
  kNeeded,  // the command keeps something in the bakeoff home, or starts what is kept there
  kUnused,
};

// Which words of a command line belong to the user's scripts; no option is looked for among them.
enum class Tail {
  kNone,
  kBehindDashes,  // those behind the first "--"
  kBehindScript,  // those behind the first word that is neither an option nor an option's value
};

struct Command {
  const char* name;
  const char* summary;
  const char* example;           // null: `add` writes the footer
  Action (*add)(CLI::App& sub);  // adds the options; its result is called once they have their values
  Home home = Home::kNeeded;
  Tail tail = Tail::kNone;
};

// A command of a command: `bakeoff env create`.
CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& summary,
                         const std::string& example);

extern const Command kRun, kParity, kCheck, kReport, kExport, kSuite, kFleet, kReproduce, kHistory, kStore,
    kTune, kSelfTest, kCalibrate, kEmit, kShow, kOps, kRecipe, kRecipes, kInit, kExec, kExplain, kGate,
    kBisect, kCompare, kImport, kTranslate, kEnv, kDoctor, kData, kMachine, kCompletion, kMan, kHelp,
    kExplainTerms;

}  // namespace bakeoff::cli
