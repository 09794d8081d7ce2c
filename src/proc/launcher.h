#pragma once

// The launcher: a small process that this program forks early, and that forks a guardian for every child.
//
// Why the program does not fork itself: when a worker starts, it may hold hundreds of MB of data and
// several threads. The kernel's peak memory of a child begins at the size of the process that it was forked
// from; forking a large process takes milliseconds and disturbs the measurement; and forking while other
// threads run is fragile.
//
//   int main() {
//     proc::start_launcher();   // first, before threads and data
//
// If this program dies, even by SIGKILL, every guardian sees its socket close and kills its child with all
// descendants; the launcher does the same with what is left of them, and ends.

#include "base/result.h"
#include "proc/launch_order.h"

namespace bakeoff::proc {

// Starts the launcher unless it runs already. Child::start() does so too, but calling it first in main() is
// better (see above). Children inherit the launcher's affinity, limits and umask.
Status start_launcher();
// Ends the launcher and everything that still runs below it, and waits for that. The end of the program
// does so too.
void stop_launcher();
// Sends an order to the launcher. The guardian's reports come on the other end of `fds.control`. Internal
// to this room.
Status launch(const LaunchOrder& order, LaunchFds fds);

}  // namespace bakeoff::proc
