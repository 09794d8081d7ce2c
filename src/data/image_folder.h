#pragma once

// A folder of pictures as data: FOLDER/CLASS/*.png or *.jpg. See own_data.h.

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "data/own_tensors.h"
#include "data/spec.h"
#include "ir/workload.h"

namespace bakeoff {

struct ImageFolder {
  std::vector<std::string> classes;  // names of the folders, in the order of their bytes: class 0, 1, ...
  struct File {
    std::filesystem::path path;
    int32_t label = 0;
  };
  std::vector<File> files;  // class by class, in each in the order of the bytes of their names
};

// Names that begin with a dot are left out, and files beside the class folders. Errors: no classes, a class
// without pictures, a file in a class folder that is no .png, .jpg or .jpeg, a folder in a class folder, a
// link that leads out of `folder` or nowhere.
Result<ImageFolder> list_images(const std::filesystem::path& folder);

// x U8 [N,C,H,W] of luma (C = 1) or red, green, blue (C = 3), y I32 [N]. Opens no picture.
Result<OwnData> open_image_folder(const DataSpec& spec, const ir::Workload& workload);

}  // namespace bakeoff
