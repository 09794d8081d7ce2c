#pragma once

// A block on its node: what `bakeoff fleet block` and `bakeoff fleet work` do.

#include "base/result.h"
#include "environments/interpreters.h"
#include "fleet/board.h"
#include "race/sensed.h"

namespace bakeoff::fleet {

// Runs one block and settles it; does nothing where it is settled already. An attempt that fails leaves a record of it,
// and the error. Ctrl-C or SIGTERM: the block is as if it had not begun.
Status run_block(const Board& board, int job, int block, const Interpreters& interpreters,
                 const Sensed& sensed);

// Runs those blocks of a job that no other process takes, each in a process of its own with the time limit of a block:
// one that hangs or crashes ends alone.
Status work_on(const Board& board, int job, const std::vector<std::string>& block_command);

}  // namespace bakeoff::fleet
