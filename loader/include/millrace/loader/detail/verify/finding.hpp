// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::loader {

/// What was found to be wrong with a file.
enum class finding_kind : std::uint8_t {
  checksum,    ///< a block is not as it was written
  token,       ///< a token is no id of the vocabulary
  unreadable,  ///< a block, or a `.sum`, could not be read, or is none
};

/// "checksum", "token", "unreadable".
inline const char* name_of(finding_kind kind) noexcept {
  constexpr const char* names[] = {"checksum", "token", "unreadable"};
  return names[static_cast<int>(kind)];
}

/// One thing that is wrong, and where.
struct finding {
  finding_kind kind = finding_kind::checksum;
  std::int64_t file = -1;           ///< its place in the list of data files
  std::filesystem::path path = {};  ///< of the `.bin`, `.idx` or `.sum`
  bool of_bin = true;               ///< else of the `.idx` or `.sum`, of which no sample is made
  std::int64_t block = -1;          ///< of 1 MiB; -1: none in particular
  std::uint64_t first_byte = 0;     ///< of the block
  std::uint64_t last_byte = 0;      ///< up to but without this one
  std::uint64_t at_byte = 0;        ///< where it shows: the block's first, or the token's
  std::string what = {};            ///< a sentence about the bytes
  std::int64_t sample = -1;         ///< of the run, that needed it first; -1: none, or not known
  bool served = false;              ///< part of it may have been served before this was found
  bool by_scrubber = false;
};

}  // namespace millrace::loader
