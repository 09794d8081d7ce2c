#include "store/read_run.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cctype>

#include "base/clock.h"
#include "base/files.h"
#include "records/records.h"
#include "summary/summarise.h"
#include "table/text.h"

namespace bakeoff::store {
namespace {

// Part of every stamp: a program that reads more of a run reads all of them again.
constexpr int kReading = 1;

constexpr const char* kFiles[] = {"run.json", "parity.jsonl", "trials.jsonl", "commits.jsonl",
                                  "accepted.jsonl"};

bool is_run(const fs::path& folder) {
  struct stat status {};
  return ::lstat((folder / "run.json").c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

// What a run keeps for its workers, not for readers.
bool is_inner(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name == "scripts" || name == "logs" || name == "cache" || name == "gate" || name == ".git";
}

}  // namespace

void find_runs(const fs::path& root, const std::function<bool(const fs::path&)>& found,
               const std::function<void(const fs::path&, const std::string&)>& unreadable) {
  std::vector<fs::path> open = {root};
  while (!open.empty()) {
    const fs::path folder = std::move(open.back());
    open.pop_back();
    const bool run = is_run(folder);
    if (run && !found(folder)) return;
    std::error_code failed;
    for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
      std::error_code ignored;
      const bool below = at->symlink_status(ignored).type() == fs::file_type::directory;
      if (below && !(run && is_inner(at->path()))) open.push_back(at->path());
    }
    if (failed) unreadable(folder, failed.message());
  }
}

std::string stamp_of(const fs::path& run) {
  std::string stamp = fmt::format("{}", kReading);
  for (const char* name : kFiles) {
    struct stat status {};
    const bool there = ::lstat((run / name).c_str(), &status) == 0;
    stamp += there
                 ? fmt::format(" {}:{}.{:09}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
                 : " -";
  }
  return stamp;
}

Result<IndexedRun> read_run(const fs::path& run) {
  const std::string stamp = stamp_of(run);  // first: what is written meanwhile is read the next time
  TRY(const RunDirectory directory, RunDirectory::open(run));
  TRY(const std::string manifest, read_regular_file(run / "run.json"));
  std::string first_trial;
  if (const auto trials = read_regular_file(run / "trials.jsonl"))
    first_trial = trials->substr(0, trials->find('\n'));
  TRY(const Summary summary, summarise(directory));
  TRY(const auto commits, directory.read<Commit>());
  TRY(const auto accepted, directory.read<AcceptedStep>());
  TRY(IndexedRun indexed, indexed_run(summary, commits, accepted, manifest, first_trial, utc_now()));
  indexed.directory = stored_path(run);
  indexed.stamp = stamp;
  return indexed;
}

std::string stored_path(const fs::path& path) {
  std::error_code ignored;
  const fs::path absolute = fs::weakly_canonical(fs::absolute(path), ignored);
  const std::string raw = (absolute.empty() ? path : absolute).string();
  if (table::clean(raw) == raw && raw.find_first_of("\n\t") == std::string::npos) return raw;
  std::string coded = "bytes:";
  for (const char c : raw) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '-' || c == '_')
      coded += c;
    else
      coded += fmt::format("%{:02X}", byte);
  }
  return coded;
}

fs::path path_of(const std::string& stored) {
  if (!stored.starts_with("bytes:")) return stored;
  std::string raw;
  for (size_t i = 6; i < stored.size(); ++i) {
    if (stored[i] == '%' && i + 2 < stored.size()) {
      raw += static_cast<char>(std::strtol(stored.substr(i + 1, 2).c_str(), nullptr, 16));
      i += 2;
    } else {
      raw += stored[i];
    }
  }
  return raw;
}

}  // namespace bakeoff::store
