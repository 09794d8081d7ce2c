#include "fleet/board.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "base/sha256.h"
#include "records/records.h"

namespace bakeoff::fleet {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSettings = "fleet.json";
constexpr const char* kResult = "result.json";

// The number that a name is, or that it begins with before `end`; 0: none.
int number_of(const std::string& name, std::string_view end = "") {
  int number = 0;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && std::string_view(rest) == end ? number : 0;
}

// A new name of a written file: false if there is a file of this name.
Result<bool> name_once(const fs::path& written, const fs::path& name) {
  const int done = ::link(written.c_str(), name.c_str());
  const int error = errno;
  std::error_code ignored;
  fs::remove(written, ignored);
  if (done == 0) return true;
  if (error == EEXIST) return false;
  return Error{.message = fmt::format("cannot link '{}': {}", name.string(), std::strerror(error)),
               .where = {},
               .remedy = "the shared folder needs a file system with hard links"};
}

}  // namespace

Board::Board(const fs::path& run, Settings settings)
    : run_(fs::absolute(run).lexically_normal()),
      folder_(run_ / kFleetFolder),
      settings_(std::move(settings)) {}

Result<Board> Board::open(const fs::path& run) {
  const fs::path file = run / kFleetFolder / kSettings;
  const auto text = read_regular_file(file);
  if (!text && !fs::exists(file))
    return Error{.message = "this is no run of a fleet: it has no file fleet/fleet.json",
                 .where = run.string(),
                 .remedy = "`bakeoff fleet plan RECIPE --engine ENGINE --out DIR` makes one"};
  if (!text) return text.error();
  TRY(Settings settings, settings_from_json(*text, file.string()));
  return Board(run, std::move(settings));
}

Result<Board> Board::create(const fs::path& run, const Settings& settings) {
  Board board(run, settings);
  for (const char* part : {"blocks", "jobs", "logs"}) CHECK_OK(make_folder(board.folder_ / part));
  CHECK_OK(write_file(board.folder_ / kSettings, to_json(settings)));
  return board;
}

fs::path Board::block_folder(int block) const { return folder_ / "blocks" / fmt::format("{:05}", block); }

Result<std::vector<int>> Board::blocks() const {
  std::vector<int> all;
  std::error_code code;
  for (fs::directory_iterator it(folder_ / "blocks", code), end; !code && it != end; it.increment(code))
    if (const int number = number_of(it->path().filename()); number > 0) all.push_back(number);
  if (code)
    return Error{.message = "cannot read the folder: " + code.message(),
                 .where = (folder_ / "blocks").string()};
  std::ranges::sort(all);
  return all;
}

Status Board::write(const HeatOrder& order) const {
  CHECK_OK(make_folder(block_folder(order.number)));
  return write_file(order_file(order.number), to_json(order) + "\n");
}

Result<HeatOrder> Board::order(int block) const {
  TRY(const std::string text, read_regular_file(order_file(block)));
  return heat_order_from_json(text, order_file(block).string());
}

bool Board::settled(int block) const { return fs::exists(block_folder(block) / kResult); }

Result<bool> Board::settle(const BlockResult& result) const {
  const fs::path folder = block_folder(result.block);
  const fs::path written = folder / ("result-" + own_name() + ".json");
  CHECK_OK(write_file(written, to_json(result)));
  return name_once(written, folder / kResult);
}

Result<BlockResult> Board::result(int block) const {
  const fs::path file = block_folder(block) / kResult;
  TRY(const std::string text, read_regular_file(file));
  TRY(BlockResult result, block_result_from_json(text, file.string()));
  if (result.block != block)
    return Error{.message = "it is the result of another block", .where = file.string()};
  return result;
}

Status Board::set_aside(int block) const {
  const fs::path folder = block_folder(block);
  std::error_code code;
  for (int n = 1; n < 100; ++n) {
    const fs::path aside = folder / fmt::format("damaged-{}.json", n);
    if (fs::exists(aside)) continue;
    fs::rename(folder / kResult, aside, code);
    // Another collector may have been quicker.
    if (!code || code == std::errc::no_such_file_or_directory) return Done{};
    break;
  }
  return Error{.message = "cannot rename the damaged result: " + code.message(), .where = folder.string()};
}

Status Board::write(const FailedAttempt& failed, const std::string& attempt) const {
  return write_file(block_folder(failed.block) / ("failed-" + attempt + ".json"), to_json(failed));
}

std::vector<FailedAttempt> Board::failures(int block) const {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::directory_iterator it(block_folder(block), code), end; !code && it != end; it.increment(code))
    if (it->path().filename().string().starts_with("failed-")) files.push_back(it->path());
  std::ranges::sort(files);
  std::vector<FailedAttempt> all;
  for (const fs::path& file : files) {
    const auto text = read_regular_file(file);
    if (!text) continue;
    if (auto failed = failed_attempt_from_json(*text, file.string())) all.push_back(std::move(*failed));
  }
  return all;
}

Result<bool> Board::take(int block, int job, const std::string& node) const {
  const fs::path folder = block_folder(block);
  const fs::path written = folder / ("taking-" + own_name());
  CHECK_OK(write_file(written, node));
  return name_once(written, folder / fmt::format("taken-{}", job));
}

std::string Board::taken_by(int block, int job) const {
  const auto text = read_regular_file(block_folder(block) / fmt::format("taken-{}", job));
  return text ? *text : "";
}

Status Board::write(const Check& check) const {
  const fs::path folder = folder_ / "checks" / check.node;
  CHECK_OK(make_folder(folder));
  const fs::path file = folder / fmt::format("{}-{}.json", sha256(check.contender),
                                             check.differs.empty() ? "sound" : "differs");
  return fs::exists(file) ? Status(Done{}) : write_file(file, to_json(check));
}

std::vector<Check> Board::checks() const {
  std::vector<Check> all;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder_ / "checks", code), end; !code && it != end;
       it.increment(code)) {
    if (it->path().extension() != ".json") continue;
    const auto text = read_regular_file(it->path());
    if (!text) continue;
    if (auto check = check_from_json(*text, it->path().string())) all.push_back(std::move(*check));
  }
  return all;
}

Status Board::write(const Job& job) const {
  return write_file(folder_ / "jobs" / fmt::format("{}.json", job.number), to_json(job));
}

Result<std::vector<Job>> Board::jobs() const {
  std::vector<Job> all;
  std::error_code code;
  for (fs::directory_iterator it(folder_ / "jobs", code), end; !code && it != end; it.increment(code)) {
    if (number_of(it->path().filename(), ".json") == 0) continue;
    TRY(const std::string text, read_regular_file(it->path()));
    TRY(Job job, job_from_json(text, it->path().string()));
    all.push_back(std::move(job));
  }
  std::ranges::sort(all, {}, &Job::number);
  return all;
}

namespace {

fs::path note_of(const fs::path& run, const Settings& settings) {
  std::error_code code;
  const fs::path place = fs::weakly_canonical(run, code);
  return bakeoff_home() / "fleets" / sha256((code ? run : place).string() + "\n" + to_json(settings));
}

}  // namespace

Status Board::note_ours() const { return write_file(note_of(run_, settings_), ""); }

Status Board::check_ours() const {
  if (fs::exists(note_of(run_, settings_))) return Done{};
  return Error{
      .message = "it was planned elsewhere, or fleet.json was edited: the commands that it names are not run",
      .where = (folder_ / kSettings).string(),
      .remedy =
          "set BAKEOFF_HOME to the home that it was planned with, or plan it again; "
          "`bakeoff fleet collect` without --wait runs no command"};
}

Result<FileLock> Board::lock() const { return FileLock::attempt(folder_ / ".lock"); }

}  // namespace bakeoff::fleet
