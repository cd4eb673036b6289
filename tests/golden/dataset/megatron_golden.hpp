// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <simdjson.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::test {

/// golden/megatron_golden.json of the shared folder: what Megatron-LM made of small corpora.
/// tests/golden/README.md says how.
class megatron_golden {
 public:
  /// @pre !shared_folder().empty()
  megatron_golden() : text_(read_text(shared_folder() / "golden/megatron_golden.json")) {
    all_ = parser_.parse(text_);
  }

  simdjson::dom::element operator[](std::string_view key) const { return all_[key]; }

  /// Writes its two corpora, `corpus` and `corpus2`: sequences that count up and end in 999.
  static void write_corpora(const std::filesystem::path& folder) {
    write_corpus(folder / "corpus", 24, 37, 7, 23);
    write_corpus(folder / "corpus2", 18, 53, 5, 17);
  }

 private:
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

/// An array of numbers, of any depth, flat.
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

}  // namespace millrace::test
