// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/reader_choice.hpp>

#include <cstdint>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::string_view name_of(back_end b) noexcept {
  switch (b) {
    case back_end::mmap:
      return "mmap";
    case back_end::pread:
      return "pread";
    case back_end::io_uring:
      return "io_uring";
    case back_end::cufile:
      return "cufile";
    default:
      return "auto";
  }
}

MILLRACE_INLINE back_end back_end_of(std::string_view text, const std::string& where) {
  for (const back_end b : {back_end::automatic, back_end::mmap, back_end::pread, back_end::io_uring,
                           back_end::cufile}) {
    if (text == name_of(b)) return b;
  }
  throw config_error(where + " is '" + std::string(text) +
                     "', expected auto, mmap, pread, io_uring or cufile");
}

namespace detail {

/// Formats a size for messages: "12.5 GiB", "3.0 MiB", "100 bytes".
MILLRACE_INLINE std::string readable_bytes(std::uint64_t bytes) {
  constexpr const char* units[] = {" KiB", " MiB", " GiB", " TiB"};  // NOLINT: a table
  if (bytes < 1024) return std::to_string(bytes) + " bytes";
  std::uint64_t tenths = bytes;
  int unit = -1;
  while (tenths >= 1024 && unit < 3) {
    ++unit;
    if (tenths < std::uint64_t{1024} * 1024 || unit == 3) {
      tenths = tenths * 10 / 1024;
      break;
    }
    tenths /= 1024;
  }
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + units[unit];
}

MILLRACE_INLINE std::string percent(double share) {
  return std::to_string(static_cast<int>(share * 100)) + " %";
}

}  // namespace detail

MILLRACE_INLINE reader_choice choose_reader(const reader_facts& f) {
  const std::string size = detail::readable_bytes(f.bytes);
  const std::string files =
      std::to_string(f.files) + (f.files == 1 ? " file of " : " files of ") + size;
  std::string without_cufile;
  if (f.to_device && f.request_bytes >= large_request) {
    if (f.cufile_direct) {
      return {
          back_end::cufile, map_advice::random,
          "requests of " + detail::readable_bytes(f.request_bytes) + " to a GPU: " + f.cufile_why};
    }
    without_cufile = "; cuFile was not chosen: " + f.cufile_why;
  }
  if (f.network_files > 0) {
    return {back_end::pread, map_advice::random,
            std::to_string(f.network_files) + " of " + files +
                " are on network file systems, where maps fault page by page" + without_cufile};
  }
  if (f.files > 0 && f.memory_files == f.files) {
    return {back_end::mmap, map_advice::by_memory,
            files + " are in memory (tmpfs)" + without_cufile};
  }
  if (!f.available) {
    return {back_end::mmap, map_advice::random,
            files + ", and the available memory is unknown" + without_cufile};
  }
  const std::string room =
      detail::readable_bytes(*f.available) + " of available memory (" + f.available_by + ")";
  if (f.bytes <= *f.available / 2) {
    return {back_end::mmap, map_advice::resident,
            files + " fit into half of " + room + without_cufile};
  }
  const std::string cached =
      f.resident ? detail::percent(*f.resident) + " of it in memory (" + f.resident_by + ")"
                 : "an unknown share of it in memory";
  if (f.resident && *f.resident >= resident_enough) {
    return {back_end::mmap, map_advice::resident, files + ", " + cached + without_cufile};
  }
  if (f.maps > f.most_maps) {
    return {back_end::pread, map_advice::random,
            files + " need " + std::to_string(f.maps) + " maps, more than the limit of " +
                std::to_string(f.most_maps) + without_cufile};
  }
  const std::string cold = files + ", " + cached + ", " + room;
  if (f.bytes / beyond_memory < *f.available) {
    return {back_end::mmap, map_advice::by_memory,
            cold + "; the page cache can keep much of them" + without_cufile};
  }
  if (f.uring) {
    return {back_end::io_uring, map_advice::random,
            cold + "; the page cache can keep little of them" + without_cufile};
  }
  return {back_end::mmap, map_advice::random,
          cold + "; io_uring was not chosen: " + f.uring_why + without_cufile};
}

}  // namespace millrace::loader
