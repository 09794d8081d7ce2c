#pragma once

// The launcher: a small process forked from this one, early, that forks a guardian for every child.
//
// Why not fork from the program itself: it may hold hundreds of MB of data and several threads by the time a
// worker starts. A child's peak memory as the kernel reports it begins at the size of the process it was
// forked from, forking a large process takes milliseconds and disturbs what is being measured, and forking
// while other threads run is fragile.
//
//   int main() {
//     proc::start_launcher();   // first thing, before threads and data
//
// When this program dies, even by SIGKILL, every guardian sees its socket close and kills its child with all
// descendants; the launcher does the same with whatever might be left of them, and ends.

#include "base/result.h"
#include "proc/launch_order.h"

namespace bakeoff::proc {

// Starts the launcher unless it runs already. Child::start() does so itself if need be; calling it first
// thing in main() is better (see above). The launcher's affinity, limits and umask are what children inherit.
Status start_launcher();

// Ends the launcher with whatever still runs below it, and waits for that. The end of the program does so
// too.
void stop_launcher();

// Hands an order over (internal to this room). Guardian's reports come on the other end of `fds.control`.
Status launch(const LaunchOrder& order, LaunchFds fds);

}  // namespace bakeoff::proc
