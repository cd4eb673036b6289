// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/loader/detail/verify/verify_options.hpp>

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
  bool of_bin = true;               ///< false if the fault is in the `.idx` or `.sum`
  std::int64_t block = -1;          ///< number of the 1 MiB block; -1: no particular block
  std::uint64_t first_byte = 0;     ///< first byte of the block
  std::uint64_t last_byte = 0;      ///< end of the block, exclusive
  std::uint64_t at_byte = 0;        ///< byte of the fault: first byte of the block or token
  std::string what = {};            ///< a sentence about the fault
  std::int64_t sample = -1;         ///< sample that needed the block; -1: none or unknown
  bool served = false;              ///< true if the block may have been served before the check
  bool by_scrubber = false;
};

/// What a verifier has checked and found so far.
struct verify_report {
  verify_mode mode = verify_mode::off;
  std::int64_t files = 0;
  std::int64_t files_without_sum = 0;  ///< number of opened files without checksums
  std::string without_sum = {};        ///< path of one of these files

  std::int64_t blocks = 0;         ///< number of blocks in all `.bin` files
  std::int64_t touched = 0;        ///< blocks checked when they were first needed
  std::int64_t scrubbed = 0;       ///< blocks checked by the scrubber, including `.idx` files
  std::int64_t left = 0;           ///< blocks left to the scrubber when first needed
  std::int64_t bad = 0;            ///< bad blocks among those checked
  std::uint64_t touch_cpu_ns = 0;  ///< CPU time of the loader's threads for checks
  std::uint64_t scrub_cpu_ns = 0;
  bool scrubbed_all = false;  ///< true if the scrubber has checked its whole part

  std::int64_t found = 0;              ///< number of findings
  std::vector<finding> findings = {};  ///< the first findings, at most `most_findings`

  static constexpr std::size_t most_findings = 1000;

  /// Formats the report as one line: "verify first_touch: 800 blocks: 120 checked at first touch,
  /// ...".
  std::string text() const {
    const auto number = [](std::int64_t n) { return std::to_string(n); };
    std::string line = std::string("verify ") + name_of(mode);
    if (mode == verify_mode::off) return line;
    line += ": " + number(blocks) + " blocks: " + number(touched) + " checked at first touch, " +
            number(scrubbed) + " checked by the scrubber" +
            (scrubbed_all ? " (all of its part)" : "") + ", " + number(left) +
            " left to the scrubber; " + number(bad) + " bad";
    if (files_without_sum > 0) {
      line += "; " + number(files_without_sum) + " of " + number(files) +
              " files have no .sum, e.g. " + without_sum;
    }
    if (found > 0) line += "; " + number(found) + " findings, the first: " + findings.front().what;
    return line;
  }
};

}  // namespace millrace::loader
