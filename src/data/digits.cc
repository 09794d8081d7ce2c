// The digits of scikit-learn, from its wheel on the Python package index: nothing of it is installed.

#include <fmt/format.h>

#include "base/files.h"
#include "data/image_sets.h"
#include "environments/environments.h"

namespace bakeoff {
namespace {

constexpr const char* kWheel = "scikit-learn==1.7.2";

// As published: rows of 64 pixels (0..16) and the digit, comma-separated. The folder gets them as IDX files.
constexpr const char* kUnpack = R"(
import glob, gzip, struct, zipfile

with zipfile.ZipFile(glob.glob("scikit_learn-*.whl")[0]) as wheel:
    text = gzip.decompress(wheel.read("sklearn/datasets/data/digits.csv.gz")).decode()
rows = [[int(float(n)) for n in line.split(",")] for line in text.split()]
with open("digits-images-idx3-ubyte", "wb") as file:
    file.write(struct.pack(">4i", 0x803, len(rows), 8, 8))
    file.write(bytes(n for row in rows for n in row[:64]))
with open("digits-labels-idx1-ubyte", "wb") as file:
    file.write(struct.pack(">2i", 0x801, len(rows)))
    file.write(bytes(row[64] for row in rows))
)";

Status fetch_digits(const fs::path& into, const Progress& progress) {
  const std::string remedy =
      "the digits come from the Python package scikit-learn: check the network, or put the two IDX files "
      "into "
      "the folder idx/ beside the prepared ones (see docs/data.md)";
  TRY(const fs::path python, find_python());
  progress("fetching the digits of scikit-learn (its wheel, 10 MB)");
  CHECK_OK(fetch_by({python.string(), "-m", "venv", "pip"}, into, remedy));
  const std::string pip = (into / "pip/bin/python").string();
  CHECK_OK(fetch_by({pip, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps",
                     "--only-binary=:all:", kWheel},
                    into, remedy));
  return fetch_by({pip, "-c", kUnpack}, into, remedy);
}

}  // namespace

const ImageSet& digits() {
  static const ImageSet set = {
      .name = "digits",
      .title = "scikit-learn's digits",
      .classes = 10,
      .splits = {{"train",
                  "digits-images-idx3-ubyte",
                  "digits-labels-idx1-ubyte",
                  "359cd13f0f514122884198b78a131df597421cbf5e93a76678fa96fc548f0d96",
                  "ce71631c1f31ce56fa54f31d1d498fafacff59b001e6c30c4a5e29508aa277ad",
                  {1797, 8, 8}}},
      .fetch = fetch_digits,
  };
  return set;
}

}  // namespace bakeoff
