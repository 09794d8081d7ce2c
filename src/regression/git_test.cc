#include "regression/git.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/time_budget.h"
#include "proc/run.h"

namespace bakeoff::regression {
namespace {

namespace fs = std::filesystem;

class GitRepository : public ::testing::Test {
 protected:
  void SetUp() override {
    sh("git init -q -b main . && git config user.email a@b.c && git config user.name T");
    for (const char* text : {"one", "two", "three"}) commit(text);
  }
  void sh(const std::string& command) {
    const auto done = proc::run_command({.child = {.argv = {"/bin/sh", "-c", command}, .cwd = place()}});
    ASSERT_TRUE(done && done->ok()) << command << ": " << (done ? done->output_tail : done.error().text());
  }
  void commit(const std::string& text) {
    ASSERT_TRUE(write_file(place() / "file.txt", text));
    ASSERT_TRUE(write_file(place() / "message", text + " <b>\n\nbody"));
    sh("git add file.txt && git commit -q -F message");
  }
  const fs::path& place() const { return folder_->path(); }
  Repository repository() { return Repository::open(place()).value(); }
  std::string listed() {
    const auto done = proc::run_command({.child = {.argv = {"git", "worktree", "list"}, .cwd = place()}});
    return done ? done->output_tail : "";
  }

 private:
  Result<TemporaryFolder> folder_ = TemporaryFolder::make("git");
};

TEST_F(GitRepository, NamesOfCommits) {
  const Commit head = repository().commit("HEAD").value();
  EXPECT_EQ(head.id.size(), 40U);
  EXPECT_EQ(head.subject, "three <b>");
  EXPECT_EQ(repository().commit("main").value(), head);
  EXPECT_EQ(repository().commit("HEAD~1").value().subject, "two <b>");
  const auto unknown = repository().commit("mian");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("'mian' names no commit"), std::string::npos);
  EXPECT_NE(unknown.error().remedy.find("did you mean 'main'?"), std::string::npos);
}

TEST_F(GitRepository, HostileNamesAreNoOptions) {
  for (const char* name :
       {"--help", "-1", "", "--upload-pack=touch pwned", "a b;touch pwned", "$(touch pwned)", "main\nx"})
    EXPECT_FALSE(repository().commit(name)) << name;
  EXPECT_FALSE(fs::exists(place() / "pwned"));
}

TEST_F(GitRepository, AFolderThatIsNone) {
  const auto other = TemporaryFolder::make("git").value().path();
  EXPECT_FALSE(Repository::open(other));
  EXPECT_FALSE(Repository::open("/no/such/folder"));
}

TEST_F(GitRepository, UncommittedChanges) {
  EXPECT_EQ(repository().uncommitted().value(), "");
  ASSERT_TRUE(write_file(place() / "untracked", ""));
  EXPECT_EQ(repository().uncommitted().value(), "");
  ASSERT_TRUE(write_file(place() / "file.txt", "changed"));
  EXPECT_EQ(repository().uncommitted().value(), "file.txt");
}

TEST_F(GitRepository, AWorktreeHasTheVersionAndVanishes) {
  ASSERT_TRUE(write_file(place() / "file.txt", "dirty"));
  ASSERT_TRUE(write_file(place() / ".git/hooks/post-checkout", "#!/bin/sh\ntouch hooked\n"));
  fs::permissions(place() / ".git/hooks/post-checkout", fs::perms::owner_all);
  fs::path path;
  {
    const Worktree tree = Worktree::add(repository(), repository().commit("HEAD~2").value()).value();
    path = tree.path();
    EXPECT_EQ(read_file(path / "file.txt").value(), "one");
    EXPECT_FALSE(fs::exists(path / "hooked")) << "the user's hooks do not run";
    ASSERT_TRUE(write_file(path / "built", "x"));
    EXPECT_EQ(path.filename(), place().filename());
  }
  EXPECT_FALSE(fs::exists(path.parent_path()));
  EXPECT_EQ(listed().find("bakeoff_tmp_version"), std::string::npos) << listed();
  EXPECT_EQ(read_file(place() / "file.txt").value(), "dirty");
}

TEST_F(GitRepository, WhatAKilledProcessLeftIsRemoved) {
  // A folder for temporary files of its own: in the common one other tests, too, remove what was left.
  const TemporaryFolder common = TemporaryFolder::make("git").value();
  const std::string before = fs::temp_directory_path();
  ::setenv("TMPDIR", common.path().c_str(), 1);
  const fs::path temporary = common.path(), own = common.path() / "users_own";
  for (const std::string name : {"version_killed", "version_gonegone"}) {
    const fs::path left = temporary / ("bakeoff_tmp_" + name);
    fs::create_directories(left);
    sh("git worktree add -q --detach " + (left / "x").string() + " HEAD~1");
  }
  fs::remove_all(temporary / "bakeoff_tmp_version_gonegone");
  sh("git worktree add -q --detach " + own.string() + " HEAD~1");
  fs::remove_all(own);  // perhaps on a disk that is not there now
  { const auto tree = Worktree::add(repository(), repository().commit("HEAD").value()); }
  EXPECT_FALSE(fs::exists(temporary / "bakeoff_tmp_version_killed"));
  EXPECT_EQ(listed().find("bakeoff_tmp_version"), std::string::npos) << listed();
  EXPECT_NE(listed().find("users_own"), std::string::npos) << "not one of ours";
  ::setenv("TMPDIR", before.c_str(), 1);
}

TEST_F(GitRepository, CommitsBetween) {
  const auto all =
      repository().between(repository().commit("HEAD~2").value(), repository().commit("HEAD").value());
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ((*all)[0].subject, "two <b>");
  EXPECT_EQ((*all)[1].subject, "three <b>");
  EXPECT_FALSE(repository().between((*all)[1], (*all)[0])) << "no ancestor";
  EXPECT_FALSE(repository().between((*all)[1], (*all)[1])) << "the same";
}

TEST_F(GitRepository, ABuildThatFailsShowsItsLastLines) {
  const auto failed =
      build("base (main)", "echo first; echo last line >&2; exit 3", place(), TimeBudget::kNoLimit, {});
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find("base (main) does not build"), std::string::npos);
  EXPECT_NE(failed.error().message.find("exit code 3"), std::string::npos);
  EXPECT_NE(failed.error().message.find("last line"), std::string::npos);
  const auto late = build("head", "sleep 600", place(), 0.5, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().where, "--budget");
  EXPECT_NE(late.error().message.find("was not built in the time that the budget left"), std::string::npos);
  EXPECT_TRUE(build("head", "touch made", place(), TimeBudget::kNoLimit, {}));
  EXPECT_TRUE(fs::exists(place() / "made"));
}

}  // namespace
}  // namespace bakeoff::regression
