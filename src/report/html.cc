#include "report/html.h"

#include <fmt/format.h>

#include <cassert>
#include <kainjow/mustache.hpp>
#include <string_view>

#include "base/embedded.h"
#include "report/html_view.h"
#include "report/page.h"

namespace bakeoff::embedded {
const std::vector<File>& report_templates();
}  // namespace bakeoff::embedded

namespace bakeoff::report {
namespace {

namespace mustache = kainjow::mustache;

std::string embedded_file(std::string_view path) {
  for (const embedded::File& file : embedded::report_templates()) {
    if (file.path == path) return std::string(file.text);
  }
  assert(false && "not embedded");
  return "";
}

mustache::data to_data(const View& view) {
  mustache::data data;
  for (const auto& [key, text] : view.texts) data.set(key, text);
  for (const auto& [key, flag] : view.flags)
    data.set(key, flag ? mustache::data::type::bool_true : mustache::data::type::bool_false);
  for (const auto& [key, views] : view.lists) {
    mustache::data list{mustache::data::type::list};
    for (const View& entry : views) list.push_back(to_data(entry));
    data.set(key, list);
  }
  return data;
}

}  // namespace

std::string render_page(const std::string& name, View view) {
  view.texts["style"] = embedded_file("style.css");
  view.texts["script"] = embedded_file("script.js");
  view.texts["history_style"] = embedded_file("history.css");
  view.texts["history_script"] = embedded_file("history.js");
  mustache::data data = to_data(view);
  for (const char* part : {"section", "row"})
    data.set(part, mustache::partial([part] { return embedded_file(std::string(part) + ".html"); }));
  mustache::mustache page(embedded_file(name));
  assert(page.is_valid());
  return page.render(data);
}

std::string render_html(const Summary& summary, const HtmlOptions& options) {
  return render_page("page.html", page_view(summary, options.sources));
}

}  // namespace bakeoff::report
