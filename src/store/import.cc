// Imports runs from folders that may hold thousands, on disks that may be slow. Reading is most of the time
// and is done by threads; writing is one transaction for many runs, as each costs a wait for the disk. A
// batch is stored after two seconds even if it is not full, so that Ctrl-C or a crash loses little, and what
// was stored before is skipped by its stamp the next time. A run that cannot be read is skipped with its
// reason: whatever a reader throws, the import goes on.

#include "store/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include "base/clock.h"
#include "base/file_lock.h"
#include "base/files.h"
#include "store/read_run.h"
#include "table/text.h"

namespace bakeoff::store {
namespace {

constexpr size_t kBatch = 200;    // runs of one transaction
constexpr size_t kWaiting = 256;  // directories found and not read yet
constexpr double kTold_s = 5;     // between two lines of progress
constexpr double kBatch_s = 2;    // a batch is stored after this long, also when it is not full

using Read = std::pair<fs::path, Result<IndexedRun>>;

// Directories go in, runs come out, read by threads of its own. What a read throws is its error.
class Readers {
 public:
  explicit Readers(unsigned count) {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Readers() {
    end();
    for (std::thread& thread : threads_) thread.join();
  }

  size_t busy() {
    const std::lock_guard hold(mutex_);
    return waiting_.size() + reading_;
  }
  void add(fs::path run) {
    const std::lock_guard hold(mutex_);
    waiting_.push_back(std::move(run));
    changed_.notify_all();
  }
  // All that is read so far; waits where there is nothing and something is to come.
  std::vector<Read> take() {
    std::unique_lock hold(mutex_);
    changed_.wait_for(hold, std::chrono::milliseconds(50),
                      [this] { return !done_.empty() || waiting_.size() + reading_ == 0; });
    return std::exchange(done_, {});
  }

 private:
  void end() {
    const std::lock_guard hold(mutex_);
    ended_ = true;
    waiting_.clear();
    changed_.notify_all();
  }

  static Result<IndexedRun> read(const fs::path& run) {
    try {
      return read_run(run);
    } catch (const std::exception& thrown) {
      return Error{.message = fmt::format("cannot be read: {}", thrown.what())};
    }
  }

  void work() {
    std::unique_lock hold(mutex_);
    for (;;) {
      changed_.wait(hold, [this] { return ended_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const fs::path run = std::move(waiting_.front());
      waiting_.pop_front();
      ++reading_;
      hold.unlock();
      Read done{run, read(run)};
      hold.lock();
      --reading_;
      done_.push_back(std::move(done));
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<fs::path> waiting_;
  std::vector<Read> done_;
  size_t reading_ = 0;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

class Importer {
 public:
  Importer(Index& index, const ImportWish& wish) : index_(index), wish_(wish) {}

  Result<Imported> run() {
    TRY(known_, index_.stamps());
    Readers readers(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
    Status done = Done{};
    for (const fs::path& root : wish_.roots) {
      find_runs(
          root,
          [&](const fs::path& found) {
            done = take_up(found, readers);
            imported_.stopped |= wish_.stop();
            return done && !imported_.stopped;
          },
          [&](const fs::path& folder, const std::string& why) { skip(folder, why); });
      if (!done) return done.error();
      if (imported_.stopped) break;
    }
    while (readers.busy() > 0 && !imported_.stopped) {
      CHECK_OK(collect(readers));
      imported_.stopped |= wish_.stop();
    }
    CHECK_OK(collect(readers));
    CHECK_OK(store());
    return std::move(imported_);
  }

 private:
  Status take_up(const fs::path& run, Readers& readers) {
    const std::string directory = stored_path(run);
    const auto known = known_.find(directory);
    if (!seen_.insert(directory).second) return Done{};  // below two roots
    if (!wish_.again && known != known_.end() && known->second == stamp_of(run)) {
      ++imported_.unchanged;
      return Done{};
    }
    readers.add(run);
    while (readers.busy() > kWaiting && !wish_.stop()) CHECK_OK(collect(readers));
    return Done{};
  }

  void skip(const fs::path& folder, const std::string& why) {
    imported_.skipped.push_back({stored_path(folder), table::one_line(why), utc_now()});
    skipped_.push_back(imported_.skipped.back());
  }

  Status collect(Readers& readers) {
    for (Read& read : readers.take()) {
      if (read.second)
        batch_.push_back(std::move(*read.second));
      else
        skip(read.first, read.second.error().where.empty()
                             ? read.second.error().message
                             : read.second.error().where + ": " + read.second.error().message);
    }
    const bool late = seconds_since(stored_ns_) > kBatch_s && !batch_.empty();
    return batch_.size() + skipped_.size() >= kBatch || late ? store() : Status(Done{});
  }

  Status store() {
    if (!batch_.empty()) {
      TRY(const int64_t copies, index_.put(batch_));
      imported_.copies += copies;
      imported_.read += static_cast<int64_t>(batch_.size()) - copies;
    }
    CHECK_OK(index_.skip(skipped_));
    batch_.clear();
    skipped_.clear();
    stored_ns_ = monotonic_clock().now_ns();
    if (seconds_since(told_ns_) < kTold_s) return Done{};
    told_ns_ = stored_ns_;
    wish_.progress(fmt::format("{} runs read, {} unchanged, {} skipped", imported_.read, imported_.unchanged,
                               imported_.skipped.size()));
    return Done{};
  }

  Index& index_;
  const ImportWish& wish_;
  std::map<std::string, std::string> known_ = {};
  std::set<std::string> seen_ = {};
  std::vector<IndexedRun> batch_ = {};
  std::vector<Skipped> skipped_ = {};
  Imported imported_ = {};
  int64_t stored_ns_ = monotonic_clock().now_ns();
  int64_t told_ns_ = stored_ns_;
};

fs::path roots_file(const fs::path& home) { return home / "index.roots"; }

}  // namespace

Result<Imported> import_runs(Index& index, const ImportWish& wish) { return Importer(index, wish).run(); }

Status keep_root(const fs::path& home, const fs::path& root) {
  TRY(const FileLock lock, FileLock::wait(home / ".index.roots.lock"));
  const auto roots = kept_roots(home);
  const fs::path absolute = path_of(stored_path(root));
  // Below a root that is kept already.
  for (fs::path at = absolute;; at = at.parent_path()) {
    if (std::find(roots.begin(), roots.end(), at) != roots.end()) return Done{};
    if (at == at.parent_path()) break;
  }
  return append_line(roots_file(home), stored_path(root));
}

std::vector<fs::path> kept_roots(const fs::path& home) {
  std::vector<fs::path> roots;
  const auto text = read_file(roots_file(home));
  if (!text) return roots;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) roots.push_back(path_of(line));
  return roots;
}

}  // namespace bakeoff::store
