#pragma once

// What a node is before it runs a block: its processor's clock, the speed and the noise of identical work, and the
// limits that its contenders are held against.

#include "base/result.h"
#include "fleet/board.h"
#include "race/sensed.h"

namespace bakeoff::fleet {

// The node's name: $SLURMD_NODENAME, where several daemons may share a machine, else that of the host.
std::string node_name();

// Takes 0.3 s, and 2 s more for the first block of a node, whose limits are kept in fleet/nodes/NAME.json.
Result<Node> probe_node(const Board& board, const Sensed& sensed);

}  // namespace bakeoff::fleet
