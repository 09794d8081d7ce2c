#pragma once

// Ctrl-C. The first SIGINT, SIGTERM or SIGHUP sets a flag; every exchange with a child then returns
// "interrupted" at once, and the caller ends its workers, keeps what it has and leaves. A second one, at
// least 300 ms later, ends this program on the spot with exit code 128 + signal: guardians (launcher.h) then
// kill everything that is still running.

namespace bakeoff::proc {

// Installs the handlers, for the whole process. Once, in main().
void install_interrupt_handlers();

// Whether a signal has come, and which (0 = none).
bool interrupted();
int interrupt_signal();

// Readable (poll(2)) once a signal has come; -1 if the handlers are not installed.
int interrupt_fd();

// Forgets the signal: for tests, and for a program that goes on.
void clear_interrupt();

}  // namespace bakeoff::proc
