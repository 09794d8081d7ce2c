// The link between two processes of this machine: TCP over the loopback interface, as gloo's ranks use it. One thread
// sends, another on its own CPU receives; the kernel copies every byte twice. One direction alone is measured: ranks
// that send and receive at once are slower, so what follows from this rate is a lower bound of time.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "roofline/measure.h"

namespace bakeoff::roofline {
namespace {

constexpr int64_t kLinkPiece = 1 << 18;   // bytes of one call
constexpr int64_t kLinkBytes = 16 << 20;  // bytes of one window
constexpr int kLinkWindows = 24;
constexpr int kLinkPatience = 5;  // seconds without a byte

class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~Socket() { close(); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }
  int get() const { return descriptor_; }
  bool good() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

int new_socket() { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP); }

// A socket that listens on the loopback interface, and its address.
bool listens(const Socket& socket, sockaddr_in& address) {
  address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* at = reinterpret_cast<sockaddr*>(&address);
  return socket.good() && ::bind(socket.get(), at, size) == 0 && ::listen(socket.get(), 1) == 0 &&
         ::getsockname(socket.get(), at, &size) == 0;
}

void send_all(int to, const Stop& stop) {
  const std::vector<char> piece(kLinkPiece, 1);
  for (int64_t sent = 0; sent < kLinkBytes * kLinkWindows && !(stop && stop());) {
    const ssize_t now = ::send(to, piece.data(), piece.size(), MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return;
    sent += now;
  }
}

// Bytes per second of the fastest window; 0 where none was whole.
double receive_all(int from) {
  std::vector<char> piece(kLinkPiece);
  double best = 0, begin = now_s();
  int64_t received = 0;
  while (true) {
    const ssize_t now = ::recv(from, piece.data(), piece.size(), 0);
    if (now < 0 && errno == EINTR) continue;
    if (now <= 0) return best;
    received += now;
    if (received < kLinkBytes) continue;
    const double end = now_s();
    best = std::max(best, static_cast<double>(received) / (end - begin));
    received = 0;
    begin = end;
  }
}

}  // namespace

void measure_link(const MeasureOptions& options, Limits& limits) {
  report_progress(options, "link between two processes");
  const auto absent = [&](const std::string& why) {
    limits.absent.push_back({"link between processes", why});
  };
  if (options.cpus.size() < 2) return absent("there is one CPU only");
  const auto refused = [&] {
    absent(std::string("no connection over the loopback interface: ") + std::strerror(errno));
  };
  sockaddr_in address;
  const Socket door(new_socket());
  if (!listens(door, address)) return refused();
  Socket sender(new_socket());
  if (!sender.good() || ::connect(sender.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return refused();
  const Socket receiver(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!receiver.good()) return refused();
  const timeval patience{.tv_sec = kLinkPatience, .tv_usec = 0};
  ::setsockopt(receiver.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  ::setsockopt(sender.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  std::thread sending([&] {
    on_cpu(options.cpus[1], [&] { send_all(sender.get(), options.stop); });
    sender.close();  // the receiver reads its end
  });
  on_cpu(options.cpus[0], [&] { limits.link = receive_all(receiver.get()); });
  sending.join();
  if (limits.link <= 0 && !stopped(options)) absent("nothing arrived");
}

}  // namespace bakeoff::roofline
