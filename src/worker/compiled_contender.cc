#include "worker/compiled_contender.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/texts.h"
#include "emit/code_writer.h"
#include "proc/run.h"
#include "worker/worker_messages.h"

namespace bakeoff::embedded {
const std::vector<File>& libtorch_runner();
const std::vector<File>& libtorch_runner_base();
const std::vector<File>& native_runner();
}  // namespace bakeoff::embedded

namespace bakeoff {
namespace {

constexpr const char* kInstall = "install a C++ compiler and CMake: apt-get install g++ cmake make";
constexpr const char* kInstallCompiler = "install a C++ compiler: apt-get install g++";

// A failure of Stage::kCompile; the remedy is part of the reason.
Failure because(const Error& error, std::string log = {}) {
  return {Stage::kCompile, error.line(), std::move(log)};
}

struct Tools {
  fs::path cmake, compiler;
  std::string generator;
  std::string version;   // the compiler's first line
  fs::path torch_cmake;  // what torch.utils.cmake_prefix_path says
  std::string torch_version;
};

std::string path_variable() {
  const char* path = std::getenv("PATH");
  return path == nullptr ? "/usr/bin:/bin" : path;
}

Result<fs::path> needed(const std::vector<std::string>& names, const std::string& what,
                        const char* remedy = kInstall) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    if (auto found = proc::find_program(name, path_variable())) return *found;
  }
  return Error{.message = fmt::format("there is no {} in PATH", what), .remedy = remedy};
}

// The output of a short command.
Result<std::string> output_of(const std::vector<std::string>& argv) {
  proc::CommandOptions options;
  options.child.argv = argv;
  options.timeout_ns = 60 * kSecond;
  TRY(const auto result, proc::run_command(options));
  if (!result.ok()) {
    return Error{.message = fmt::format("'{}' failed: {}: {}", argv[0], result.text(),
                                        last_lines(result.output_tail, 1))};
  }
  return result.output_tail;
}

// Where the torch of an interpreter is, without importing it.
Status find_torch(const fs::path& python, Tools& tools) {
  TRY(const std::string text,
      output_of({python.string(), "-c",
                 "import importlib.util as u, importlib.metadata as m\n"
                 "s = u.find_spec('torch')\n"
                 "print('\\nbakeoff:' + (s.submodule_search_locations[0] if s else ''))\n"
                 "print('bakeoff:' + (m.version('torch') if s else ''))"}));
  std::vector<std::string> found;
  for (size_t at = text.find("bakeoff:"); at != std::string::npos; at = text.find("bakeoff:", at + 1)) {
    found.push_back(text.substr(at + 8, text.find('\n', at) - at - 8));
  }
  if (found.size() != 2 || found[0].empty())
    return Error{.message = fmt::format("'{}' has no package torch", python.string())};
  tools.torch_cmake = fs::path(found[0]) / "share" / "cmake";
  tools.torch_version = found[1];
  if (!fs::exists(tools.torch_cmake / "Torch")) {
    return Error{.message = fmt::format("the torch of '{}' has no libtorch for CMake: there is no '{}'",
                                        python.string(), (tools.torch_cmake / "Torch").string()),
                 .remedy = "install torch from its wheel"};
  }
  return Done{};
}

Status find_compiler(Tools& tools, const char* remedy) {
  const char* named = std::getenv("CXX");
  if (named != nullptr && *named != '\0') {
    TRY(tools.compiler,
        needed({named}, fmt::format("'{}', which CXX names,", named), "name a C++ compiler, or unset CXX"));
  } else {
    TRY(tools.compiler, needed({"g++", "c++", "clang++"}, "C++ compiler", remedy));
  }
  TRY(const std::string version, output_of({tools.compiler.string(), "--version"}));
  tools.version = version.substr(0, version.find('\n'));
  return Done{};
}

Result<Tools> find_tools(const fs::path& python) {
  Tools tools;
  TRY(tools.cmake, needed({"cmake"}, "CMake"));
  const bool ninja = proc::find_program("ninja", path_variable()).has_value();
  if (!ninja) {
    TRY(const fs::path make, needed({"make"}, "make or ninja"));
  }
  tools.generator = ninja ? "Ninja" : "Unix Makefiles";
  CHECK_OK(find_compiler(tools, kInstall));
  CHECK_OK(find_torch(python, tools));
  return tools;
}

// Everything that a runner is compiled from; the plain one needs no library.
std::vector<embedded::File> runner_sources(bool plain) {
  std::vector<embedded::File> all = plain ? embedded::native_runner() : embedded::libtorch_runner();
  for (const embedded::File& file : embedded::libtorch_runner()) {
    const bool shared = file.path.starts_with("json.") || file.path.starts_with("worker.");
    if (plain && shared) all.push_back(file);
  }
  for (const embedded::File& file : embedded::libtorch_runner_base()) all.push_back(file);
  return all;
}

class Hash {
 public:
  void add(std::string_view part) {
    hash_.add(std::to_string(part.size()) + ":");
    hash_.add(part);
  }
  std::string key() { return hash_.hex().substr(0, 16); }

 private:
  Sha256 hash_;
};

// What a processor can do: a program compiled for one may not run on another.
std::string processor_flags() {
  const auto text = read_file("/proc/cpuinfo");
  const size_t at = text ? text->find("\nflags") : std::string::npos;
  return at == std::string::npos ? "" : text->substr(at, text->find('\n', at + 1) - at);
}

std::string runner_key(const Tools& tools) {
  Hash hash;
  const bool plain = tools.cmake.empty();
  if (plain) hash.add(processor_flags());
  for (const embedded::File& file : runner_sources(plain)) {
    hash.add(file.path);
    hash.add(file.text);
  }
  for (const std::string& part : {tools.compiler.string(), tools.version, tools.torch_cmake.string(),
                                  tools.torch_version, tools.generator}) {
    hash.add(part);
  }
  return hash.key();
}

Result<std::string> worker_key(const CompileJob& job, const std::string& runner) {
  TRY(const std::string text, worker_main(job.sources));
  Hash hash;
  hash.add(runner + join(job.flags, " "));
  hash.add(text);
  return hash.key();
}

// The first line that says "error", which is what ended it; else how it ended.
std::string explain(const proc::CommandResult& result) {
  const std::string& text = result.output_tail;
  for (const char* word : {" error: ", "Error "}) {
    const size_t at = text.find(word);
    if (result.timed_out || at == std::string::npos) continue;
    const size_t begin = text.rfind('\n', at) + 1;
    return text.substr(begin, text.find('\n', at) - begin);
  }
  return result.text();
}

std::optional<Failure> run_tool(const std::vector<std::string>& argv, const std::string& what,
                                double seconds) {
  proc::CommandOptions options;
  options.child.argv = argv;
  options.timeout_ns = static_cast<int64_t>(seconds * static_cast<double>(kSecond));
  const auto result = proc::run_command(options);
  if (!result) return because(result.error());
  if (result->ok()) return std::nullopt;
  return Failure{Stage::kCompile, fmt::format("{}: {}", what, explain(*result)),
                 last_lines(result->output_tail, 40)};
}

std::vector<std::string> configuration(const Tools& tools, const fs::path& source, const fs::path& build) {
  return {tools.cmake.string(),
          "-G",
          tools.generator,
          "-S",
          source.string(),
          "-B",
          build.string(),
          "-DCMAKE_BUILD_TYPE=Release",
          "-DCMAKE_CXX_COMPILER=" + tools.compiler.string(),
          "-DCMAKE_PREFIX_PATH=" + tools.torch_cmake.string()};
}

// A program that is compiled in two precisions chooses its own in this line.
constexpr std::string_view kReal = "\nusing Real = float;";

// What native programs take for granted. A compiler that is too old says so here, not in the middle of a program.
constexpr std::string_view kProbe = R"(#include <string>
struct Shape { int rows = 1; };
template <Shape S> constexpr int rows() { return S.rows; }
static_assert(rows<Shape{.rows = 2}>() == 2);
bool ends(const std::string& text) { return text.ends_with("a"); }
)";
constexpr const char* kTooOld =
    "{} is too old for C++20; install g++ 11 or clang 14, or newer (apt-get install g++), and name it in CXX";

constexpr const char* kCannotPrepare = "CMake cannot prepare the build";
constexpr const char* kRefused = "the compiler refused the program";

// One compilation, in the build folder that all workers of a runner share; its lock is held.
class Compilation {
 public:
  Compilation(const CompileJob& job, const Tools& tools, fs::path runner, fs::path worker)
      : job_(job), tools_(tools), runner_(std::move(runner)), worker_(std::move(worker)) {}

  Compiled run(const Progress& progress) {
    Compiled done{.program = worker_ / "worker", .compiler = tools_.version};
    done.failure = configure();
    if (!done.failure) {
      if (!fs::exists(runner_ / "build" / "librunner.a"))
        progress(plain() ? "compiling the runner of native programs, once for this compiler"
                         : "compiling the LibTorch runner, once for this torch and compiler");
      done.failure = build("runner");
    }
    if (done.failure) return done;
    progress("compiling " + job_.sources.front().filename().string());
    const int64_t begin = monotonic_clock().now_ns();
    done.failure = build("worker");
    done.ns = monotonic_clock().now_ns() - begin;
    if (done.failure) return done;
    std::error_code code;
    fs::create_directories(worker_, code);
    const fs::path part = worker_ / "worker.part";
    fs::copy_file(runner_ / "build" / "worker", part, fs::copy_options::overwrite_existing, code);
    if (!code) fs::rename(part, done.program, code);
    if (code) {
      done.failure =
          because({.message = fmt::format("cannot keep '{}': {}", done.program.string(), code.message())});
      return done;
    }
    // Written last: what has no such file was not finished.
    if (const auto kept = write_file(worker_ / "ns", std::to_string(done.ns)); !kept) {
      done.failure = because(kept.error());
    }
    return done;
  }

 private:
  bool plain() const { return tools_.cmake.empty(); }  // no CMake: native programs

  std::optional<Failure> configure() {
    for (const embedded::File& file : runner_sources(plain())) {
      if (const auto failed = update(runner_ / file.path, std::string(file.text))) return failed;
    }
    const auto text = worker_main(job_.sources);
    if (!text) return because(text.error());
    if (const auto failed = update(runner_ / "programs" / "worker_main.cc", *text)) return failed;
    if (plain()) return std::nullopt;
    std::vector<std::string> argv = configuration(tools_, runner_, runner_ / "build");
    argv.push_back("-DPROGRAMS=" + (runner_ / "programs").string());
    return command(argv, kCannotPrepare);
  }

  std::optional<Failure> build(const std::string& target) {
    if (plain()) return target == "runner" ? build_runner() : build_worker();
    return command(
        {tools_.cmake.string(), "--build", (runner_ / "build").string(), "--target", target, "-j", "2"},
        kRefused);
  }

  // What all plain workers share, once; the archive appears when it is complete.
  std::optional<Failure> build_runner() {
    const fs::path archive = runner_ / "build" / "librunner.a", object = runner_ / "build" / "runner.o";
    if (fs::exists(archive)) return std::nullopt;
    std::error_code code;
    fs::create_directories(runner_ / "build", code);
    const fs::path probe = runner_ / "programs" / "probe.cc";
    if (const auto failed = update(probe, std::string(kProbe))) return failed;
    if (auto failed =
            command({tools_.compiler.string(), "-std=c++20", "-fsyntax-only", probe.string()}, kRefused)) {
      failed->reason = fmt::format(kTooOld, tools_.version);
      return failed;
    }
    const fs::path all = runner_ / "programs" / "runner.cc";
    if (const auto failed = update(all,
                                   "#include \"json.cc\"\n#include \"worker.cc\"\n#include \"script.cc\"\n"
                                   "#include \"base/sha256.cc\"\n"))
      return failed;
    if (const auto failed = command({tools_.compiler.string(), "-std=c++20", "-O2", "-I" + runner_.string(),
                                     "-c", all.string(), "-o", object.string()},
                                    kRefused))
      return failed;
    fs::rename(object, archive, code);
    return std::nullopt;
  }

  // A main() in a namespace is a function like any other.
  std::optional<Failure> build_worker() {
    std::vector<std::string> argv = {tools_.compiler.string(), "-std=c++20", "-march=native",
                                     "-fno-math-errno",        "-pthread",   "-Wno-return-type",
                                     "-I" + runner_.string()};
    argv.insert(argv.end(), job_.flags.begin(), job_.flags.end());
    argv.insert(argv.end(), {(runner_ / "programs" / "worker_main.cc").string(),
                             (runner_ / "build" / "librunner.a").string(), "-o",
                             (runner_ / "build" / "worker").string()});
    return command(argv, kRefused);
  }

  // Writes what is not there yet: an unchanged file is not compiled again.
  static std::optional<Failure> update(const fs::path& path, const std::string& text) {
    if (const auto there = read_file(path); there && *there == text) return std::nullopt;
    const auto written = write_file(path, text);
    return written ? std::nullopt : std::optional<Failure>(because(written.error()));
  }

  std::optional<Failure> command(const std::vector<std::string>& argv, const std::string& what) const {
    return run_tool(argv, what, job_.seconds);
  }

  const CompileJob& job_;
  const Tools& tools_;
  fs::path runner_, worker_;
};

// A worker of an earlier run.
std::optional<Compiled> kept(const fs::path& folder, const Tools& tools) {
  const auto text = read_file(folder / "ns");
  if (!text || !fs::exists(folder / "worker")) return std::nullopt;
  Compiled found{.program = folder / "worker", .compiler = tools.version, .kept = true};
  std::from_chars(text->data(), text->data() + text->size(), found.ns);
  return found;
}

// CMake refuses a build folder that was made under another path, for example before the home was moved.
void forget_if_moved(const fs::path& build) {
  const auto cache = read_file(build / "CMakeCache.txt");
  std::error_code ignored;
  if (cache && cache->find("directory: " + build.string() + "\n") == std::string::npos)
    fs::remove_all(build, ignored);
}

Result<Compiled> compile(const CompileJob& job, const Progress& progress) {
  Tools tools;
  if (job.python.empty()) {
    CHECK_OK(find_compiler(tools, kInstallCompiler));
  } else {
    TRY(tools, find_tools(job.python));
  }
  const std::string runner = runner_key(tools);
  TRY(const std::string key, worker_key(job, runner));
  std::error_code unknown;
  fs::path folder = fs::weakly_canonical(job.home / "compiled", unknown);  // CMake keeps absolute paths
  if (unknown) folder = job.home / "compiled";
  if (const auto found = kept(folder / key, tools)) return *found;
  TRY(const FileLock lock, FileLock::wait(folder / (".runner-" + runner + ".lock")));
  if (const auto found = kept(folder / key, tools)) return *found;
  forget_if_moved(folder / ("runner-" + runner) / "build");
  return Compilation(job, tools, folder / ("runner-" + runner), folder / key).run(progress);
}

}  // namespace

Result<std::string> worker_main(const std::vector<fs::path>& sources) {
  std::set<std::string> headers, names;
  std::string programs;
  for (const fs::path& source : sources) {
    TRY(const std::string text, read_file(source));
    const std::string name = emit::identifier(source.stem().string());
    if (name != source.stem() || !names.insert(name).second) {
      return Error{.message = fmt::format("'{}' cannot be a namespace of the worker", source.stem().string()),
                   .remedy = "name the program with letters, digits and underscores, unlike any other"};
    }
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      if (line.starts_with("#include <")) headers.insert(line);
      begin = end + 1;
    }
    // The text itself, with its lines: the compiler's messages name the program's own file.
    const auto in_namespace = [&](const std::string& space, const std::string& lines) {
      return fmt::format("namespace {0} {{\n#line 1 \"{1}\"\n{2}\n}}  // namespace {0}\n", space,
                         source.filename().string(), lines);
    };
    const bool answers = text.find("\nclass Answer {") != std::string::npos;
    const size_t real = text.find(kReal);
    programs += in_namespace(name, text);
    if (real != std::string::npos)
      programs += in_namespace(name + "_wide",
                               std::string(text).replace(real, kReal.size(), "\nusing Real = double;"));
    programs += fmt::format("{}({})\n\n",
                            real != std::string::npos ? "BAKEOFF_NATIVE"
                            : answers                 ? "BAKEOFF_ANSWERS"
                                                      : "BAKEOFF_SCRIPT",
                            name);
  }
  return fmt::format(
      "#include \"script.h\"\n\n{}\n\n{}int main(int argc, char** argv) {{ return "
      "bakeoff::serve_programs(argc, argv); }}\n",
      join(headers, "\n"), programs);
}

std::optional<Failure> compile_folder(const fs::path& folder, const std::string& target,
                                      const fs::path& python, const fs::path& build) {
  const auto tools = find_tools(python);
  if (!tools) return because(tools.error());
  const double seconds = CompileJob().seconds;
  if (const auto failed = run_tool(configuration(*tools, folder, build), kCannotPrepare, seconds))
    return failed;
  return run_tool({tools->cmake.string(), "--build", build.string(), "--target", target}, kRefused, seconds);
}

Compiled compile_contender(const CompileJob& job, const Progress& progress) {
  auto done = compile(job, progress);
  if (done) return *done;
  return {.failure = because(done.error())};
}

}  // namespace bakeoff
