#include "worker.h"

#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

namespace bakeoff {
namespace {

constexpr int kRequests = 3, kAnswers = 4;
constexpr size_t kMaxLine = size_t{32} << 20;
constexpr size_t kMaxTraceback = 32'000;

// A request that cannot be understood.
struct ProtocolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Channel {
 public:
  // The next line; nothing at the end of the requests.
  std::optional<std::string> receive() {
    while (true) {
      if (const size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char part[4096];
      const ssize_t n = ::read(kRequests, part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return std::nullopt;
      buffer_.append(part, static_cast<size_t>(n));
    }
  }

  void send(const Json& answer) {
    std::string line = answer.dump() + "\n";
    if (line.size() > kMaxLine)
      throw std::length_error("an answer of " + std::to_string(line.size()) + " bytes");
    for (size_t sent = 0; sent < line.size();) {
      const ssize_t n = ::write(kAnswers, line.data() + sent, line.size() - sent);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) std::exit(1);  // the supervisor is gone
      sent += static_cast<size_t>(n);
    }
  }

 private:
  std::string buffer_;
};

const Json* field(const Json& request, const char* key) {
  const Json* value = request.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::string path(const Json& request, const char* key) {
  const Json* value = field(request, key);
  if (value == nullptr) return "";
  if (!value->is_string() || value->string().empty()) {
    throw ProtocolError("'" + std::string(key) + "' is not a path");
  }
  return value->string();
}

std::string needed_path(const Json& request, const char* key) {
  std::string value = path(request, key);
  if (value.empty()) throw ProtocolError("'" + std::string(key) + "' is missing");
  return value;
}

bool flag(const Json& request, const char* key) {
  const Json* value = field(request, key);
  if (value != nullptr && !value->is_bool())
    throw ProtocolError("'" + std::string(key) + "' is not true or false");
  return value == nullptr || value->boolean();
}

int64_t positive(const Json& request, const char* key) {
  const Json* value = field(request, key);
  if (value == nullptr || !value->is_integer() || value->integer() < 1) {
    throw ProtocolError("'" + std::string(key) + "' is not a positive integer");
  }
  return value->integer();
}

ImportRequest import_request(const Json& request) {
  ImportRequest out;
  if (const Json* options = field(request, "options")) {
    if (!options->is_object()) throw ProtocolError("'options' is not an object");
    for (const auto& [name, value] : options->object()) {
      if (!value.is_string()) throw ProtocolError("option '" + name + "' is not a string");
      out.options[name] = value.string();
    }
  }
  out.threads = static_cast<int>(positive(request, "threads"));
  return out;
}

bool double_precision(const Json& request) {
  const Json* dtype = field(request, "dtype");
  if (dtype == nullptr) return false;
  if (!dtype->is_string() || (dtype->string() != "float32" && dtype->string() != "float64"))
    throw ProtocolError("'dtype' is neither float32 nor float64");
  return dtype->string() == "float64";
}

ParityRequest parity_request(const Json& request) {
  const Json* batch = field(request, "batch");
  const auto counts = [](const Json& n) { return n.is_integer() && n.integer() >= 0; };
  if (batch == nullptr || !batch->is_array() || batch->array().size() != 2 || !counts(batch->array()[0]) ||
      !counts(batch->array()[1]) || batch->array()[1].integer() < 1) {
    throw ProtocolError("'batch' is not [first, count]");
  }
  return {batch->array()[0].integer(), batch->array()[1].integer(), path(request, "grads_in"),
          needed_path(request, "out")};
}

std::vector<int64_t> whole_numbers(const Json& request, const char* key) {
  const Json* value = field(request, key);
  if (value == nullptr || !value->is_array()) throw ProtocolError("'" + std::string(key) + "' is no list");
  std::vector<int64_t> all;
  for (const Json& number : value->array()) {
    if (!number.is_integer()) throw ProtocolError("'" + std::string(key) + "' is not a list of integers");
    all.push_back(number.integer());
  }
  return all;
}

std::vector<std::vector<int64_t>> shapes(const Json& request, const char* key) {
  const Json* value = field(request, key);
  if (value == nullptr || !value->is_array()) throw ProtocolError("'" + std::string(key) + "' is no list");
  std::vector<std::vector<int64_t>> all;
  for (const Json& shape : value->array()) {
    if (!shape.is_array()) throw ProtocolError("'" + std::string(key) + "' is not a list of shapes");
    std::vector<int64_t>& lengths = all.emplace_back();
    for (const Json& length : shape.array()) {
      if (!length.is_integer()) throw ProtocolError("'" + std::string(key) + "' is not a list of shapes");
      lengths.push_back(length.integer());
    }
  }
  return all;
}

// VmHWM and VmRSS of this process, in bytes.
Json memory() {
  Json sizes;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    const auto bytes = [&] { return int64_t{1024} * std::atoll(line.c_str() + line.find(':') + 1); };
    if (line.starts_with("VmHWM:")) sizes["peak_rss_bytes"] = bytes();
    if (line.starts_with("VmRSS:")) sizes["rss_bytes"] = bytes();
  }
  return sizes;
}

class Worker {
 public:
  Worker(Adapter& adapter, std::string framework) : adapter_(adapter), framework_(std::move(framework)) {}

  int refuse(const std::string& why) {
    send_failure(0, "start", why, "");
    return 2;
  }

  int run(Ring& ring) {
    channel_.send({{"id", 0},
                   {"ok", true},
                   {"event", "hello"},
                   {"protocol", 1},
                   {"pid", static_cast<int64_t>(::getpid())},
                   {"python", std::string("C++, ") + kCompiler},
                   {"framework", framework_}});
    while (const auto line = channel_.receive()) {
      if (serve_line(*line, ring)) return 0;
    }
    return 0;
  }

 private:
  // True when it was the last.
  bool serve_line(const std::string& line, Ring& ring) {
    int64_t id = 0;
    std::string op = "protocol";
    try {
      const Json request = parse(line, id);
      op = request.find("op")->string();
      Json answer = {{"id", id}, {"ok", true}};
      if (op != "close") perform(op, request, ring, answer);
      std::fflush(nullptr);
      channel_.send(answer);
      return op == "close";
    } catch (const ProtocolError& error) {
      send_failure(id, "protocol", error.what(), "");
    } catch (const AdapterError& error) {
      send_failure(id, op, error.what(), error.traceback);
    } catch (const std::exception& error) {
      send_failure(id, op, error.what(), "");
    }
    std::fflush(nullptr);
    return false;
  }

  static Json parse(const std::string& line, int64_t& id) {
    Json request;
    try {
      request = Json::parse(line);
    } catch (const std::invalid_argument& error) {
      throw ProtocolError(error.what());
    }
    if (const Json* number = request.find("id"); number != nullptr && number->is_integer())
      id = number->integer();
    if (!request.is_object() || id < 1) throw ProtocolError("'id' is not a positive integer");
    const Json* name = request.find("op");
    if (name == nullptr || !name->is_string()) throw ProtocolError("'op' is not a string");
    return request;
  }

  void perform(const std::string& op, const Json& request, Ring& ring, Json& answer) {
    if (op == "memory") return add(answer, memory());
    if (op == "import") return import(request, answer);
    if (op != "build" && op != "parity" && op != "losses" && op != "run" && op != "state" &&
        op != "batches" && op != "restore" && op != "rates" && op != "outputs" && op != "serve") {
      throw ProtocolError("unknown op '" + op + "'");
    }
    if (!imported_) throw ProtocolError("the framework is not imported yet");
    if (op == "build") return build(request, answer);
    if (!built_) throw ProtocolError("nothing is built");
    if (op == "parity") return parity(request, answer);
    if (op == "state") return state(request, answer);
    if (op == "batches") return batches(request, answer);
    if (op == "rates") return rates(request, answer);
    if (op == "restore") return adapter_.restore();
    const bool of_answers = op == "outputs" || op == "serve";
    if (adapter_.answers() != of_answers && op != "run")
      throw ProtocolError("'" + op + "' belongs to another scenario");
    if (op == "outputs") return outputs(answer);
    if (op == "serve") return requests(request, answer);
    op == "losses" ? losses(request, answer) : train(request, ring, answer);
  }

  void import(const Json& request, Json& answer) {
    if (imported_) throw ProtocolError("the framework is imported already");
    const ImportRequest what = import_request(request);
    const int64_t start = now_ns();
    const Json found = adapter_.import_framework(what);
    answer["import_ns"] = now_ns() - start;
    add(answer, found);
    imported_ = true;
  }

  void build(const Json& request, Json& answer) {
    const BuildRequest what = {needed_path(request, "script"), path(request, "weights"),
                               path(request, "data"),          path(request, "layout"),
                               flag(request, "dropout"),       flag(request, "train"),
                               double_precision(request)};
    built_ = false;
    const int64_t start = now_ns();
    const Json effective = adapter_.build(what);
    answer["build_ns"] = now_ns() - start;
    answer["effective"] = effective;
    built_ = true;
  }

  void parity(const Json& request, Json& answer) {
    Json::Array names;
    for (const std::string& name : adapter_.parity(parity_request(request))) names.emplace_back(name);
    answer["tensors"] = names;
  }

  void state(const Json& request, Json& answer) {
    Json::Array names;
    for (const std::string& name : adapter_.write_state(needed_path(request, "out")))
      names.emplace_back(name);
    answer["tensors"] = names;
  }

  void batches(const Json& request, Json& answer) {
    Json::Array hashes;
    for (const std::string& hash :
         adapter_.batch_hashes(positive(request, "count"), shapes(request, "row_shapes")))
      hashes.emplace_back(hash);
    answer["sha256"] = hashes;
  }

  void rates(const Json& request, Json& answer) {
    const std::vector<double> found = adapter_.rates(whole_numbers(request, "steps"));
    if (!found.empty()) answer["rates"] = Json::Array(found.begin(), found.end());
  }

  void losses(const Json& request, Json& answer) {
    const Losses found = adapter_.losses(positive(request, "steps"));
    answer["losses"] = Json::Array(found.losses.begin(), found.losses.end());
    answer["first_ns"] = found.first_ns;
    answer["ns"] = found.ns;
  }

  void train(const Json& request, Ring& ring, Json& answer) {
    const int64_t steps = positive(request, "steps");
    ring.after(0, {});
    if (const std::string changes = path(request, "nudge"); !changes.empty()) {
      adapter_.nudge(changes);
      const bool again = field(request, "nudge_every") != nullptr;
      if (const int64_t every = again ? positive(request, "nudge_every") : steps; every < steps)
        ring.after(every, [this] { adapter_.nudge(""); });
    }
    const int64_t start = now_ns();
    const Burst burst = adapter_.run(steps, ring);
    answer["ns"] = burst.ns;
    answer["wall_ns"] = now_ns() - start;
    answer["steps"] = steps;
    answer["loss"] = Json();
    if (adapter_.answers()) return;
    answer["loss"] = burst.loss;
    answer["losses"] = Json::Array(burst.losses.begin(), burst.losses.end());
    Json sums;
    for (const auto& [name, value] : burst.sums) sums[name] = value;
    if (!burst.sums.empty()) answer["sums"] = sums;
    if (!burst.wait) return;
    answer["wait"] = {{"ns", burst.wait->ns},
                      {"batches", burst.wait->batches},
                      {"first_ns", burst.wait->first_ns},
                      {"firsts", burst.wait->firsts}};
  }

  void outputs(Json& answer) {
    Json::Array all;
    for (const ToldOutput& told : adapter_.outputs()) {
      Json::Array one = {told.size, told.last, told.squares};
      if (!told.words.empty()) one.emplace_back(Json::Array(told.words.begin(), told.words.end()));
      all.emplace_back(one);
    }
    answer["outputs"] = all;
  }

  // Start and end of each request in nanoseconds; the file appears under its name when it is complete.
  void requests(const Json& request, Json& answer) {
    const int64_t wanted = positive(request, "requests"), limit = positive(request, "limit_ns");
    const std::string out = needed_path(request, "out"), part = out + ".part";
    const std::vector<int64_t> due = arrivals(path(request, "arrivals"), wanted);
    std::vector<int64_t> times;
    times.reserve(static_cast<size_t>(2 * wanted));
    const int64_t zero = now_ns();
    for (int64_t n = 0; n < wanted && (times.empty() || times.back() < limit); ++n) {
      if (!due.empty()) wait_until(zero + due[static_cast<size_t>(n)]);
      times.push_back(now_ns() - zero);
      adapter_.request();
      times.push_back(now_ns() - zero);
    }
    answer["ns"] = now_ns() - zero;
    answer["requests"] = static_cast<int64_t>(times.size() / 2);
    answer["compilations"] = 0;
    std::ofstream file(part, std::ios::binary);
    file.write(reinterpret_cast<const char*>(times.data()), static_cast<std::streamsize>(8 * times.size()));
    file.close();
    if (!file || std::rename(part.c_str(), out.c_str()) != 0)
      throw AdapterError("cannot write '" + out + "'");
  }

  // When each request arrives; none without a file: when the one before is answered.
  static std::vector<int64_t> arrivals(const std::string& path, int64_t wanted) {
    if (path.empty()) return {};
    std::vector<int64_t> times(static_cast<size_t>(wanted));
    std::ifstream file(path, std::ios::binary);
    file.read(reinterpret_cast<char*>(times.data()), static_cast<std::streamsize>(8 * times.size()));
    if (!file || file.peek() != std::ifstream::traits_type::eof())
      throw AdapterError("'" + path + "' does not hold " + std::to_string(wanted) + " arrivals");
    if (!std::is_sorted(times.begin(), times.end()))
      throw AdapterError("'" + path + "': the arrivals do not ascend");
    return times;
  }

  // A sleep ends tens of microseconds late: the last millisecond is waited for awake.
  static void wait_until(int64_t moment) {
    constexpr int64_t kAwake = 1'000'000, kSecond = 1'000'000'000;
    while (now_ns() < moment) {
      const int64_t rest = moment - now_ns() - kAwake;
      if (rest < kAwake) continue;
      const timespec pause = {rest / kSecond, rest % kSecond};
      ::nanosleep(&pause, nullptr);
    }
  }

  static void add(Json& answer, const Json& fields) {
    for (const auto& [key, value] : fields.object()) answer[key] = value;
  }

  void send_failure(int64_t id, const std::string& stage, const std::string& what,
                    const std::string& traceback) {
    const size_t from = traceback.size() > kMaxTraceback ? traceback.size() - kMaxTraceback : 0;
    channel_.send({{"id", id},
                   {"ok", false},
                   {"stage", stage},
                   {"error", what.substr(0, what.find('\n'))},
                   {"traceback", traceback.substr(from)}});
  }

  Adapter& adapter_;
  std::string framework_;
  Channel channel_;
  bool imported_ = false, built_ = false;
};

// A stack in the log, then the end that the signal would have been.
void tell_crash(int signal) {
  static constexpr char kWords[] = "fatal signal; the stack, innermost call first:\n";
  [[maybe_unused]] const ssize_t ignored = ::write(2, kWords, sizeof kWords - 1);
  void* frames[64];
  ::backtrace_symbols_fd(frames, ::backtrace(frames, 64), 2);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

Ring::Ring(const std::string& path) {
  const auto fail = [&](const std::string& why) { throw AdapterError("ring '" + path + "': " + why); };
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || ::fstat(fd, &info) != 0) fail(std::strerror(errno));
  if (info.st_size < 72) fail("too short");
  void* const at =
      ::mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (at == MAP_FAILED) fail(std::strerror(errno));
  char* const bytes = static_cast<char*>(at);
  uint32_t version = 0, header = 0;
  std::memcpy(&version, bytes + 8, 4);
  std::memcpy(&header, bytes + 12, 4);
  if (std::memcmp(bytes, "BKOFRING", 8) != 0 || version != 1) fail("not a ring of version 1");
  std::memcpy(&capacity_, bytes + 16, 8);
  std::memcpy(&count_, bytes + 24, 8);
  if (capacity_ == 0 || header + 8 * capacity_ > static_cast<uint64_t>(info.st_size)) fail("too short");
  published_ = reinterpret_cast<uint64_t*>(bytes + 24);
  slots_ = reinterpret_cast<int64_t*>(bytes + header);
}

int serve(int argc, char** argv, Adapter& adapter) {
  std::string framework, ring_file;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--framework") == 0) framework = argv[i + 1];
    if (std::strcmp(argv[i], "--ring") == 0) ring_file = argv[i + 1];
  }
  if (::fcntl(kRequests, F_SETFD, FD_CLOEXEC) != 0 || ::fcntl(kAnswers, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "descriptors 3 and 4 are the control channel, which a supervisor opens\n");
    return 2;
  }
  ::signal(SIGPIPE, SIG_IGN);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::signal(signal, tell_crash);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Worker worker(adapter, framework);
  Ring ring;
  try {
    if (!ring_file.empty()) ring = Ring(ring_file);
  } catch (const AdapterError& error) {
    return worker.refuse(error.what());
  }
  return worker.run(ring);
}

}  // namespace bakeoff
