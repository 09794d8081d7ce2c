#pragma once

// SHA-256 (FIPS 180-4), for names and checks; not optimised for anything else. Needs only the standard
// library: the workers of LibTorch programs are compiled with it. For files: base/sha256_file.h.
//
//   std::string hex = sha256("abc");           // 64 lower-case hexadecimal digits

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace bakeoff {

// Takes a message in pieces of any size.
class Sha256 {
 public:
  void add(std::string_view bytes);
  // The digest of everything added so far, as 64 hexadecimal digits. Ends the message: add nothing after it.
  std::string hex();

 private:
  void block(const unsigned char* bytes);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> pending_ = {};
  uint64_t length_ = 0;  // bytes added
};

std::string sha256(std::string_view bytes);

}  // namespace bakeoff
