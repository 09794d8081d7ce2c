#include "proc/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <map>

namespace bakeoff::proc {
namespace {

// A small file of /proc in one read; empty if it cannot be read.
std::string read_proc(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char chunk[4096];
  ssize_t n = 0;
  while ((n = ::read(fd, chunk, sizeof chunk)) > 0) text.append(chunk, static_cast<size_t>(n));
  ::close(fd);
  return text;
}

// The numeric entries of a folder.
std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  DIR* directory = ::opendir(folder.c_str());
  if (directory == nullptr) return numbers;
  while (const dirent* entry = ::readdir(directory)) {
    char* end = nullptr;
    const long number = std::strtol(entry->d_name, &end, 10);
    if (end != entry->d_name && *end == '\0') numbers.push_back(static_cast<pid_t>(number));
  }
  ::closedir(directory);
  return numbers;
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  for (pid_t task : numbers_in(tasks)) {
    const std::string text = read_proc(fmt::format("{}/{}/children", tasks, task));
    const char* at = text.c_str();
    char* end = nullptr;
    for (long child = std::strtol(at, &end, 10); end != at; child = std::strtol(at, &end, 10)) {
      children.push_back(static_cast<pid_t>(child));
      at = end;
    }
  }
  return children;
}

// What follows the command name, which is in parentheses and may hold anything.
std::string stat_fields(pid_t pid) {
  const std::string stat = read_proc(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= stat.size() ? std::string()
                                                                      : stat.substr(name_end + 2);
}

bool has_children_files() {
  static const bool has = ::access("/proc/thread-self/children", R_OK) == 0;
  return has;
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  if (!has_children_files()) return descendants_by_scan(root);
  std::vector<pid_t> all = children_of(root);
  for (size_t i = 0; i < all.size(); ++i) {
    for (pid_t child : children_of(all[i])) all.push_back(child);
  }
  return all;
}

std::vector<pid_t> descendants_by_scan(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (pid_t pid : numbers_in("/proc")) {
    const std::string fields = stat_fields(pid);
    if (fields.size() > 2) children.emplace(static_cast<pid_t>(std::atol(fields.c_str() + 2)), pid);
  }
  std::vector<pid_t> all = {root};
  for (size_t i = 0; i < all.size(); ++i) {
    const auto [begin, end] = children.equal_range(all[i]);
    for (auto it = begin; it != end; ++it) all.push_back(it->second);
  }
  all.erase(all.begin());
  return all;
}

char process_state(pid_t pid) {
  const std::string fields = stat_fields(pid);
  return fields.empty() ? '\0' : fields[0];
}

int64_t resident_bytes(pid_t pid) {
  const std::string statm = read_proc(fmt::format("/proc/{}/statm", pid));
  char* end = nullptr;
  std::strtoll(statm.c_str(), &end, 10);  // the first field is the virtual size
  return std::strtoll(end, nullptr, 10) * ::sysconf(_SC_PAGESIZE);
}

}  // namespace bakeoff::proc
