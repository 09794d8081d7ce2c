#pragma once

// Ctrl-C. The first SIGINT, SIGTERM or SIGHUP sets a flag. Every exchange with a child then returns
// "interrupted" at once; the caller ends its workers, keeps its records and exits. A second signal, at
// least 300 ms later, ends this program at once with exit code 128 + signal: the guardians (launcher.h)
// then kill everything that still runs.

namespace bakeoff::proc {

// Installs the handlers for the whole process. Called once, in main().
void install_interrupt_handlers();

// Whether a signal has come, and its number (0 = none).
bool interrupted();
int interrupt_signal();

// Readable (poll(2)) once a signal has come; -1 if the handlers are not installed.
int interrupt_fd();

// Forgets the signal: for tests, and for a program that continues.
void clear_interrupt();

}  // namespace bakeoff::proc
