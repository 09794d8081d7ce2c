// The release binary runs on every glibc since 2.34. Three functions would bind to a later one on the machine that
// builds it; they are defined here, with the behaviour of the originals. A source of the program itself: a library
// would be searched too late for what libgcc and libstdc++ call. tests/wheel reads the versions of all symbols.

#include <dlfcn.h>
#include <link.h>
#include <sys/random.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#define BAKEOFF_OWN extern "C" __attribute__((visibility("hidden")))

namespace {

// The loaded object that an address belongs to.
struct Search {
  uintptr_t address = 0;
  dl_find_object* found = nullptr;
};

int look(dl_phdr_info* object, size_t, void* data) {
  const auto& search = *static_cast<const Search*>(data);
  uintptr_t begin = UINTPTR_MAX, end = 0, tables = 0;
  bool inside = false;
  for (size_t i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const uintptr_t at = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_GNU_EH_FRAME) tables = at;
    if (segment.p_type != PT_LOAD) continue;
    begin = at < begin ? at : begin;
    end = at + segment.p_memsz > end ? at + segment.p_memsz : end;
    inside = inside || (search.address >= at && search.address < at + segment.p_memsz);
  }
  if (!inside || tables == 0) return 0;
  search.found->dlfo_map_start = reinterpret_cast<void*>(begin);
  search.found->dlfo_map_end = reinterpret_cast<void*>(end);
  search.found->dlfo_eh_frame = reinterpret_cast<void*>(tables);
  return 1;
}

}  // namespace

// glibc 2.35; libgcc asks it where an object's tables of exceptions are.
BAKEOFF_OWN int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(look, &search) == 1 ? 0 : -1;
}

// glibc 2.36; std::random_device.
BAKEOFF_OWN uint32_t arc4random() noexcept {
  uint32_t number = 0;
  while (getrandom(&number, sizeof number, 0) != sizeof number) {
    if (errno != EINTR) std::abort();
  }
  return number;
}

// glibc 2.35 has a second hypot, which sets no errno. The name is given as a label: the compiler knows hypot itself,
// and would export it, so that the older one led back here.
extern "C" double hypot_of_every_glibc(double a, double b);
#if defined(__aarch64__)
asm(".symver hypot_of_every_glibc, hypot@GLIBC_2.17");
#else
asm(".symver hypot_of_every_glibc, hypot@GLIBC_2.2.5");
#endif
BAKEOFF_OWN double own_hypot(double a, double b) noexcept asm("hypot");
double own_hypot(double a, double b) noexcept { return hypot_of_every_glibc(a, b); }
