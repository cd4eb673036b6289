// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"

namespace millrace::test {

/// A simple in-memory model of a dataset: a list of documents. Each document is a list of
/// sequences, and each sequence a list of tokens.
template <class T>
using documents_of = std::vector<std::vector<std::vector<T>>>;

inline std::filesystem::path suffixed(std::filesystem::path prefix, const char* suffix) {
  return prefix += suffix;
}

/// Writes PREFIX.bin and PREFIX.idx.
template <class T>
void write_dataset(const std::filesystem::path& prefix, const documents_of<T>& documents,
                   const std::vector<std::int8_t>& modes = {}) {
  std::vector<T> tokens;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> ends = {0};
  for (const auto& document : documents) {
    for (const auto& sequence : document) {
      tokens.insert(tokens.end(), sequence.begin(), sequence.end());
      lengths.push_back(static_cast<std::int32_t>(sequence.size()));
    }
    ends.push_back(static_cast<std::int64_t>(lengths.size()));
  }
  write_bytes(suffixed(prefix, ".bin"), std::as_bytes(std::span(tokens)));
  write_bytes(suffixed(prefix, ".idx"),
              formats::encode_mmidx(formats::dtype_of<T>(), lengths, ends, modes));
}

}  // namespace millrace::test
