// Pools and resize. Pictures are held N,places,C; axes that a picture lacks have size 1.

#include <fmt/format.h>

#include <algorithm>

#include "base/texts.h"
#include "emit/native/ops.h"

namespace bakeoff::emit::native {
namespace {

using ir::Op;

std::string shape_of_pool(const Call& c) {
  const ir::Node& node = c.node();
  const size_t axes = node.integers("kernel").size(), first = 3 - axes;
  const char *const names[] = {"d", "h", "w"}, *const before[] = {"front", "top", "left"};
  std::vector<std::string> fields;
  const auto along = [&](const std::string& head, const std::vector<int64_t>& values, size_t from) {
    for (size_t i = 0; i < axes; ++i)
      if (values[from + i] != 1)
        fields.push_back(fmt::format(".{}{} = {}", head, names[first + i], values[from + i]));
  };
  along("", c.in(0).sizes, 1);
  fields.push_back(fmt::format(".c = {}", c.in(0).sizes.back()));
  along("o", c.result().sizes, 1);
  along("kernel_", node.integers("kernel"), 0);
  along("stride_", node.integers("stride"), 0);
  for (size_t i = 0; i < axes; ++i)
    if (const int64_t pad = node.integers("pad")[2 * i]; pad != 0)
      fields.push_back(fmt::format(".{} = {}", before[first + i], pad));
  if (node.has_attribute("count_include_pad") && node.flag("count_include_pad"))
    fields.emplace_back(".count_padding = true");
  return fmt::format("Pool{{{}}}", join(fields, ", "));
}

void max_pool(const Call& c) { call(c, "max_pool", {shape_of_pool(c)}, {"rows", c.x(), c.y()}); }
void max_pool_backward(const Call& c) {
  call(c, "max_pool_dx", {shape_of_pool(c)}, {"rows", c.x(), c.y(), c.g(), c.dx()});
}
void avg_pool(const Call& c) { call(c, "avg_pool", {shape_of_pool(c)}, {"rows", c.x(), c.y()}); }
void avg_pool_backward(const Call& c) { call(c, "avg_pool_dx", {shape_of_pool(c)}, {"rows", c.g(), c.dx()}); }

std::vector<std::string> channels_and_places(const Call& c) {
  const ir::Shape& x = c.in(0).sizes;
  return {std::to_string(x.back()), std::to_string(ir::product(x, 1, x.size() - 1))};
}
void global(const Call& c) { call(c, "global_avg_pool", channels_and_places(c), {"rows", c.x(), c.y()}); }
void global_backward(const Call& c) {
  call(c, "global_avg_pool_dx", channels_and_places(c), {"rows", c.g(), c.dx()});
}

// Where the places of the new axis lie among those of the old one, as ir/resize.h has it.
std::string ruler(const ir::Node& node, int64_t from, int64_t to) {
  const std::string& coordinates = node.word("coordinates");
  int64_t first = 0, step = from, per = to;
  if (coordinates == "align_corners") step = from - 1, per = std::max<int64_t>(to - 1, 1);
  if (coordinates == "half_pixel")
    first = from - (node.word("mode") == "nearest" ? 0 : to), step = 2 * from, per = 2 * to;
  return fmt::format("{{{}, {}, {}, {}, {}}}", from, to, first, step, per);
}

std::string shape_of_resize(const Call& c) {
  const ir::Shape &x = c.in(0).sizes, &y = c.result().sizes;
  const std::string letters = "dhw";
  std::vector<std::string> fields;
  for (size_t axis = 1; axis + 1 < x.size(); ++axis)
    fields.push_back(
        fmt::format(".{} = {}", letters[4 - x.size() + axis], ruler(c.node(), x[axis], y[axis])));
  fields.push_back(fmt::format(".c = {}", x.back()));
  if (c.node().word("mode") == "linear") fields.push_back(".linear = true");
  return fmt::format("Resize{{{}}}", join(fields, ", "));
}
void resized(const Call& c) { call(c, "resize", {shape_of_resize(c)}, {"rows", c.x(), c.y()}); }
void resized_backward(const Call& c) { call(c, "resize_dx", {shape_of_resize(c)}, {"rows", c.g(), c.dx()}); }

}  // namespace

OpRows window_rows() {
  OpRows rows = {{Op::kGlobalAvgPool2d, {global, global_backward, false, false}},
                 {Op::kResize, {resized, resized_backward, false, false}}};
  for (const Op op : {Op::kMaxPool1d, Op::kMaxPool2d, Op::kMaxPool3d})
    rows[op] = {max_pool, max_pool_backward};
  for (const Op op : {Op::kAvgPool1d, Op::kAvgPool2d, Op::kAvgPool3d})
    rows[op] = {avg_pool, avg_pool_backward, false, false};
  return rows;
}

}  // namespace bakeoff::emit::native
