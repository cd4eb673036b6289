// SPDX-License-Identifier: Apache-2.0
#include "tokenizer_description.hpp"

#include <filesystem>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::inspect {

dataset::python_json tokenizer_description(const std::string& path) {
  const io::file_mapping file{std::filesystem::path(path)};
  const auto bytes = file.bytes();
  try {
    auto json =
        dataset::read_python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!json.is_object()) throw format_error(0, "expected a JSON object");
    return json;
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

}  // namespace millrace::inspect
