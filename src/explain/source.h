#pragma once

// The text of a script and of the user's own files that it imports.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace bakeoff::explain {

// Lines are told by one number, as the observed process counts them (runners/bakeoff_observe/functions.py): those of the
// script from 1 on, those of another file from the number of that file on.
class Source {
 public:
  struct File {
    std::string name = {};  // from the script's folder: "models/net.py"; empty: the script itself
    int64_t first = 0;      // the number of its first line, less 1
    std::vector<std::string> lines = {};
  };

  Source() = default;
  Source(const std::string& script);  // NOLINT(google-explicit-constructor): most scripts are one file

  void add(File file) { files_.push_back(std::move(file)); }

  bool has(int64_t number) const { return text(number) != nullptr; }
  // The whole line; empty if absent.
  std::string line(int64_t number) const;
  // Whether one of its lines contains the text.
  bool contains(const std::string& text) const;
  // The file that has a line, and the line's number in it; "" and 0 if absent.
  std::pair<std::string, int64_t> place(int64_t number) const;
  // "line 12", "line 12 of model.py", "a line of a file that cannot be read"
  std::string words(int64_t number) const;
  const std::vector<File>& files() const { return files_; }  // the script first

 private:
  const File* file(int64_t number) const;
  const std::string* text(int64_t number) const;

  std::vector<File> files_;
};

}  // namespace bakeoff::explain
