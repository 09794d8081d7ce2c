#pragma once

// What hands blocks to nodes. Three of them: Slurm, ssh to named hosts, and this machine. An engine keeps nothing: what
// it has to know again lies in the job's record, so another process, on another machine, can go on.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "fleet/board.h"

namespace bakeoff::fleet {

// A block that an engine still holds.
struct Queued {
  bool running = false;   // else it waits
  std::string node = {};  // where it runs
  std::string why = {};   // why it waits, in the engine's words
  bool operator==(const Queued&) const = default;
};

class Engine {
 public:
  virtual ~Engine() = default;
  // Errors: a partition, an account or a host that does not exist, or programs that are not installed.
  virtual Status check() const = 0;
  // The largest number of blocks in one job.
  virtual size_t most() const { return 1'000'000; }
  // Sets the job's ids. `avoid`: nodes that are kept apart.
  virtual Status submit(Job& job, const std::vector<std::string>& avoid) const = 0;
  // A job without ids is one whose submission was interrupted: the engine may have it.
  // Those blocks of the job that wait or run. Error: whom it asks does not answer.
  virtual Result<std::map<int, Queued>> queued(const Job& job) const = 0;
  // Why a block that is no longer queued has left nothing; empty: nobody knows.
  virtual std::string why_gone(const Job& job, int block) const = 0;
  // Returns when nothing of the job waits or runs any more. Error: something still does.
  virtual Status cancel(const Job& job) const = 0;
};

inline constexpr const char* kEngines[] = {"slurm", "ssh", "local"};
// The one that the board's settings name; `board` outlives it.
std::unique_ptr<Engine> make_engine(const Board& board);

namespace detail {  // for make_engine
std::unique_ptr<Engine> slurm_engine(const Board& board);
std::unique_ptr<Engine> hosts_engine(const Board& board);
// The word in quotes, so that a shell reads it as one word.
std::string quoted(const std::string& word);
// The program with the words of a hidden command, on a node: "BAKEOFF_HOME='/home/x' '/shared/bakeoff' 'fleet' ...".
std::string on_node(const Board& board, const std::vector<std::string>& words);
}  // namespace detail

}  // namespace bakeoff::fleet
