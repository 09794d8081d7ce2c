#include "fleet/engine.h"

#include "base/texts.h"

namespace bakeoff::fleet {

std::unique_ptr<Engine> make_engine(const Board& board) {
  return board.settings().engine == "slurm" ? detail::slurm_engine(board) : detail::hosts_engine(board);
}

namespace detail {

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    if (c == '\'')
      text += "'\\''";
    else
      text += c;
  }
  return text + "'";
}

std::string on_node(const Board& board, const std::vector<std::string>& words) {
  const Settings& settings = board.settings();
  std::vector<std::string> all = {"BAKEOFF_HOME=" + quoted(settings.home), quoted(settings.program)};
  if (!settings.config.empty()) all.insert(all.end(), {"--config", quoted(settings.config)});
  all.emplace_back("fleet");
  for (const std::string& word : words) all.push_back(quoted(word));
  return join(all, " ");
}

}  // namespace detail
}  // namespace bakeoff::fleet
