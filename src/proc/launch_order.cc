#include "proc/launch_order.h"

#include <cstring>

namespace bakeoff::proc {
namespace {

class Packer {
 public:
  void number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(const std::string& value) {
    number(static_cast<int64_t>(value.size()));
    bytes_ += value;
  }
  void texts(const std::vector<std::string>& values) {
    number(static_cast<int64_t>(values.size()));
    for (const std::string& value : values) text(value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(const std::string& bytes) : bytes_(bytes) {}
  int64_t number() {
    int64_t value = 0;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text() {
    const size_t size = static_cast<size_t>(number());
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::vector<std::string> texts() {
    std::vector<std::string> values(static_cast<size_t>(number()));
    for (std::string& value : values) value = text();
    return values;
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

}  // namespace

std::string pack(const LaunchOrder& order) {
  Packer packer;
  packer.text(order.program);
  packer.texts(order.argv);
  packer.texts(order.env);
  packer.text(order.cwd);
  packer.number(static_cast<int64_t>(order.cpus.size()));
  for (int cpu : order.cpus) packer.number(cpu);
  packer.number(order.nice);
  packer.number(order.randomise_addresses ? 1 : 0);
  packer.number(order.huge_pages ? 1 : 0);
  packer.number(order.address_space_limit_bytes);
  packer.number(order.private_memory_limit_bytes);
  packer.number(order.memory_limit_bytes);
  packer.number(order.log_file_cap);
  packer.number(order.has_control ? 1 : 0);
  packer.number(order.has_log_file ? 1 : 0);
  packer.number(order.has_output ? 1 : 0);
  packer.number(order.own_temporary_folder ? 1 : 0);
  return packer.take();
}

LaunchOrder unpack(const std::string& bytes) {
  Unpacker unpacker(bytes);
  LaunchOrder order;
  order.program = unpacker.text();
  order.argv = unpacker.texts();
  order.env = unpacker.texts();
  order.cwd = unpacker.text();
  order.cpus.resize(static_cast<size_t>(unpacker.number()));
  for (int& cpu : order.cpus) cpu = static_cast<int>(unpacker.number());
  order.nice = static_cast<int>(unpacker.number());
  order.randomise_addresses = unpacker.number() != 0;
  order.huge_pages = unpacker.number() != 0;
  order.address_space_limit_bytes = unpacker.number();
  order.private_memory_limit_bytes = unpacker.number();
  order.memory_limit_bytes = unpacker.number();
  order.log_file_cap = unpacker.number();
  order.has_control = unpacker.number() != 0;
  order.has_log_file = unpacker.number() != 0;
  order.has_output = unpacker.number() != 0;
  order.own_temporary_folder = unpacker.number() != 0;
  return order;
}

}  // namespace bakeoff::proc
