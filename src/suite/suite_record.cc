#include "suite/suite_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files.h"
#include "base/json_text.h"
#include "base/texts.h"
#include "records/record_json.h"

namespace bakeoff::suite {
namespace {

constexpr std::array kStates = {"waiting", "running", "ended", "failed"};

}  // namespace

void to_json(RecordJson& j, const EntryState& state) { j = kStates[static_cast<size_t>(state)]; }

void from_json(const RecordJson& j, EntryState& state) {
  const auto found =
      std::ranges::find(kStates, j.get<std::string>(), [](const char* word) { return std::string(word); });
  if (found == kStates.end())
    throw RecordJson::other_error::create(500, dump(j) + " is no state of a race", &j);
  state = static_cast<EntryState>(found - kStates.begin());
}

BAKEOFF_RECORD(Entry, name, recipe, folder, state, failure, seconds, with)
BAKEOFF_RECORD(Record, version, name, file, started, minutes, baseline, every, entries, study)

namespace {

constexpr const char* kFile = "suite.json";

bool is_plain(const std::string& name) {
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Status check_record(const Record& record, const std::string& file) {
  std::set<std::string> folders;
  const auto bad = [&](const std::string& what) {
    return Error{
        .message = what, .where = file, .remedy = "the file is damaged or was edited: start a new suite"};
  };
  if (record.version != 1) return bad(fmt::format("version {} of a suite is not known", record.version));
  for (const Entry& entry : record.entries) {
    if (!is_plain(entry.folder)) return bad(fmt::format("'{}' is no plain name of a folder", entry.folder));
    if (!folders.insert(entry.folder).second) return bad(fmt::format("'{}' is there twice", entry.folder));
  }
  return Done{};
}

}  // namespace

std::string to_json(const Record& record) {
  RecordJson j;
  to_json(j, record);
  return dump(j, 2) + '\n';
}

Result<Record> record_from_json(std::string_view text, const std::string& file) {
  Record record;
  try {
    const RecordJson j = parse_json<RecordJson>(text);
    if (!j.is_object() || !j.contains("entries"))
      return Error{.message = "no record of a suite", .where = file, .remedy = "name the folder of a suite"};
    from_json(j, record);
  } catch (const RecordJson::exception& e) {
    return Error{.message = fmt::format("no record of a suite: {}", e.what()),
                 .where = file,
                 .remedy = "the file is damaged or was edited: start a new suite"};
  }
  CHECK_OK(check_record(record, file));
  return record;
}

Status write(const Record& record, const std::filesystem::path& folder) {
  return write_file(folder / kFile, to_json(record));
}

Result<Record> read(const std::filesystem::path& folder) {
  auto text = read_file(folder / kFile);
  if (!text)
    return Error{.message = text.error().message,
                 .remedy = "name the folder of a suite, as `bakeoff suite` prints it"};
  return record_from_json(*text, (folder / kFile).string());
}

Status check_count(size_t recipes, const std::string& file) {
  constexpr size_t kMost = 1000;
  if (recipes <= kMost) return Done{};
  return Error{.message = fmt::format("{} recipes, more than the {} of one suite", recipes, kMost),
               .where = file,
               .remedy = "make several suites of them"};
}

std::string folder_name(size_t index, const std::string& recipe) {
  return fmt::format("{:02}-{}", index + 1, plain_name(recipe));
}

double share(const Record& record, double least) {
  double spent = 0;
  int open = 0;
  for (const Entry& entry : record.entries) {
    spent += entry.seconds / 60;
    open += entry.open();
  }
  return std::max(least, (record.minutes - spent) / std::max(open, 1));
}

}  // namespace bakeoff::suite
