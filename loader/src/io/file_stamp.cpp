// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/file_stamp.hpp>

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>

namespace millrace::loader {

MILLRACE_INLINE void check_same(const data_file& what, std::uint64_t size,
                                const std::optional<file_stamp>& first, const file_stamp& found) {
  if (size < what.bytes) {
    throw io_error(what.path, "compare", ENODATA, size,
                   "it ends there, but should have " + std::to_string(what.bytes) +
                       " bytes according to its index; it was truncated or replaced: restore it");
  }
  const bool same = !first || found == *first;
  const bool is_the_indexs =
      !what.identity || *what.identity == io::file_identity{found.device, found.inode};
  if (same && is_the_indexs) return;
  throw io_error(what.path, "compare", ESTALE, std::nullopt,
                 "this is no longer the file that the run started with (inode " +
                     std::to_string(first ? first->inode : what.identity->inode) + " then, " +
                     std::to_string(found.inode) + " now, of " + std::to_string(found.size) +
                     " bytes): restore the old file, or start a new run with the new one");
}

}  // namespace millrace::loader
