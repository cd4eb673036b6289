// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace millrace::loader {

/// The kind of a fault in a file.
enum class finding_kind : std::uint8_t {
  checksum,    ///< a block does not match its checksum
  token,       ///< a token is outside the vocabulary
  unreadable,  ///< a block or a `.sum` could not be read, or the `.sum` is invalid
};

/// The name of a kind: "checksum", "token", "unreadable".
inline const char* name_of(finding_kind kind) noexcept {
  constexpr const char* names[] = {"checksum", "token", "unreadable"};
  return names[static_cast<int>(kind)];
}

/// One fault, and its location.
struct finding {
  finding_kind kind = finding_kind::checksum;
  std::int64_t file = -1;           ///< index in the list of data files
  std::filesystem::path path = {};  ///< path of the `.bin`, `.idx` or `.sum`
  bool of_bin = true;               ///< false: in the `.idx` or `.sum`, which holds no samples
  std::int64_t block = -1;          ///< number of the block of 1 MiB; -1: no particular block
  std::uint64_t first_byte = 0;     ///< first byte of the block
  std::uint64_t last_byte = 0;      ///< end of the block, exclusive
  std::uint64_t at_byte = 0;        ///< byte of the fault: the block's first, or the token's
  std::string what = {};            ///< a sentence about the bytes
  std::int64_t sample = -1;         ///< first sample of the run that needed it; -1: none or unknown
  bool served = false;              ///< part of the block may have been served before
  bool by_scrubber = false;
};

}  // namespace millrace::loader
