// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <simdjson.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::test {

/// The file golden/megatron_golden.json in the shared folder. It holds Megatron-LM's results for
/// small corpora. tests/golden/README.md describes how the file was made.
class megatron_golden {
 public:
  /// @pre !shared_folder().empty()
  megatron_golden() : text_(read_text(shared_folder() / "golden/megatron_golden.json")) {
    all_ = parser_.parse(text_);
  }

  simdjson::dom::element operator[](std::string_view key) const { return all_[key]; }
  simdjson::dom::element all() const { return all_; }

  /// Writes PREFIX.idx and PREFIX.bin. The entry `key` of the JSON file holds their bytes in
  /// hexadecimal.
  void write_files(std::string_view key, const std::filesystem::path& prefix) const {
    const simdjson::dom::element each = all_[key];
    write_text(suffixed(prefix, ".idx"), bytes_of(std::string_view(each["idx"])));
    write_text(suffixed(prefix, ".bin"), bytes_of(std::string_view(each["bin"])));
  }

  /// Writes `corpus` and `corpus2`, the two corpora of the golden data. The tokens of each sequence
  /// count up and end with 999.
  static void write_corpora(const std::filesystem::path& folder) {
    write_corpus(folder / "corpus", 24, 37, 7, 23);
    write_corpus(folder / "corpus2", 18, 53, 5, 17);
  }

 private:
  static std::string bytes_of(std::string_view hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      unsigned byte = 0;
      std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }

  static void write_corpus(const std::filesystem::path& prefix, int sequences, int factor,
                           int length_factor, int length_modulus) {
    documents_of<std::uint16_t> documents;
    for (int i = 0; i < sequences; ++i) {
      std::vector<std::uint16_t> tokens;
      const int length = 2 + i * length_factor % length_modulus;
      for (int k = 0; k + 1 < length; ++k) {
        tokens.push_back(static_cast<std::uint16_t>((i * factor + k) % 999));
      }
      tokens.push_back(999);
      documents.push_back({tokens});
    }
    write_dataset(prefix, documents);
  }

  std::string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element all_;
};

/// Returns all numbers of an array of any depth, in one list.
inline std::vector<std::int64_t> numbers(simdjson::dom::element element) {
  std::vector<std::int64_t> out;
  if (element.is_array()) {
    for (const simdjson::dom::element item : simdjson::dom::array(element)) {
      for (const std::int64_t number : numbers(item)) out.push_back(number);
    }
  } else {
    out.push_back(std::int64_t(element));
  }
  return out;
}

/// For tests that need short relative paths: changes the working folder until the end of the scope.
class inside {
 public:
  explicit inside(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  inside(const inside&) = delete;
  inside& operator=(const inside&) = delete;
  ~inside() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }

 private:
  std::filesystem::path before_;
};

}  // namespace millrace::test
