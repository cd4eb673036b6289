// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/index_errors.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <millrace/error.hpp>

namespace millrace::dataset::detail {

[[noreturn]] MILLRACE_INLINE void throw_bad_pointer(const std::filesystem::path& idx,
                                                    std::uint64_t offset, std::int64_t i,
                                                    std::int64_t length, std::int64_t pointer,
                                                    std::size_t item, std::uint64_t bin_bytes) {
  throw format_error(idx, offset,
                     "sequence " + std::to_string(i) + " of " + std::to_string(length) +
                         " tokens starts at byte " + std::to_string(pointer) +
                         ", expected a multiple of " + std::to_string(item) +
                         " from which it fits the " + std::to_string(bin_bytes) +
                         " bytes of the .bin");
}

[[noreturn]] MILLRACE_INLINE void throw_bad_document(const std::filesystem::path& idx,
                                                     std::uint64_t offset, std::int64_t d,
                                                     std::int64_t first, std::int64_t last,
                                                     std::int64_t sequences) {
  // Report the offset of `first` if `first` is out of range. Otherwise, report the offset of
  // `last`, which is out of range or less than `first`.
  const bool bad_first = first < 0 || first > sequences;
  throw format_error(idx, bad_first ? offset : offset + 8,
                     "document " + std::to_string(d) + " covers sequences " +
                         std::to_string(first) + " up to " + std::to_string(last) +
                         ", expected an ascending range within 0 to " + std::to_string(sequences));
}

}  // namespace millrace::dataset::detail
