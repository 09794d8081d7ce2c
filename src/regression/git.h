#pragma once

// Versions of the user's own repository, each checked out in a temporary folder of its own (git worktree). The user's
// files, index and branches are never touched, whatever state they are in.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/temporary_folder.h"

namespace bakeoff::regression {

struct Commit {
  std::string id = {};       // 40 hexadecimal digits
  std::string subject = {};  // first line of its message, cleaned
  std::string brief() const { return id.substr(0, 8); }
  bool operator==(const Commit&) const = default;
};

class Repository {
 public:
  // The repository that `folder` lies in.
  static Result<Repository> open(const std::filesystem::path& folder);

  const std::filesystem::path& root() const { return root_; }

  // The commit of a branch, tag or other name. Errors name near ones.
  Result<Commit> commit(const std::string& name) const;
  bool has(const std::string& name) const;
  // Files with changes that are in no commit, at most three of them; "" if there are none.
  Result<std::string> uncommitted() const;
  // From `good` (excluded) to `bad` (included), along first parents, oldest first. Error: good is no ancestor.
  Result<std::vector<Commit>> between(const Commit& good, const Commit& bad) const;
  // Forgets the versions of processes that were killed before they could remove them.
  void forget_killed() const;

 private:
  Result<std::string> git(const std::vector<std::string>& arguments) const;
  std::filesystem::path root_ = {};
};

// One version in a folder of its own, removed with this object, after Ctrl-C too.
class Worktree {
 public:
  static Result<Worktree> add(const Repository& repository, const Commit& commit);
  Worktree(Worktree&& other) noexcept;
  Worktree& operator=(Worktree&&) = delete;
  ~Worktree();
  const std::filesystem::path& path() const { return path_; }

 private:
  Worktree(std::filesystem::path root, TemporaryFolder outer);
  std::filesystem::path root_ = {};
  TemporaryFolder outer_;
  std::filesystem::path path_ = {};  // in `outer_`
};

// Of a command (proc/run.h) that ends with what a budget leaves, after a second at least.
int64_t timeout_of(double left_s);
// Runs a shell command in a version's folder, for as long as the budget leaves. An error has the last lines of what it
// printed, and `what` before them.
Status build(const std::string& what, const std::string& command, const std::filesystem::path& folder,
             double left_s, const std::function<void(std::string_view)>& on_line);

}  // namespace bakeoff::regression
