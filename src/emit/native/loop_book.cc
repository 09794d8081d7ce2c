#include "emit/native/loop_book.h"

#include <fmt/format.h>

#include "emit/cpp.h"

namespace bakeoff::emit::native {

std::string LoopBook::note(const std::string& head, const std::string& body, const std::string& wish) {
  const auto [place, added] = places_.emplace(head + "\n" + body, loops_.size());
  if (added) loops_.push_back({head, body, wish});
  Loop& loop = loops_[place->second];
  ++loop.uses;
  return loop.name;
}

void LoopBook::name_all(Namer& names) {
  for (Loop& loop : loops_) {
    if (loop.uses > 1) loop.name = names.name("loop:" + loop.head + loop.body, loop.wish);
  }
}

void LoopBook::print(CodeWriter& out) const {
  bool first = true;
  for (const Loop& loop : loops_) {
    if (loop.name.empty()) continue;
    if (first) out.line("// Loops that several steps have in common; `count`: of the outermost.");
    first = false;
    cpp::statement(out, fmt::format("[[gnu::noinline]] static void {}({}) {{", loop.name, loop.head));
    {
      const auto body = out.indent();
      out.print(loop.body);
    }
    out.line("}");
    out.blank();
  }
}

}  // namespace bakeoff::emit::native
