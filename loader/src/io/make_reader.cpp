// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/make_reader.hpp>

#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <millrace/io/detail/residency.hpp>
#include <millrace/loader/detail/io/cufile_reader.hpp>
#include <millrace/loader/detail/io/file_system.hpp>
#include <millrace/loader/detail/io/io_options.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/open_files.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_choice.hpp>
#include <millrace/loader/detail/io/reader_options.hpp>
#include <millrace/loader/detail/io/uring_probe.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>

#if defined(MILLRACE_HAS_URING)
#include "uring_reader.hpp"
#endif

namespace millrace::loader {

namespace detail {

/// Returns the share of the files' bytes that is in the page cache. Samples at most 256 files,
/// evenly spread.
MILLRACE_INLINE std::optional<io::residency> residency_of(const std::vector<data_file>& files) {
  constexpr std::size_t most = 256;
  const std::size_t step = (files.size() + most - 1) / most;
  double there = 0;
  std::uint64_t all = 0;
  const char* by = nullptr;
  for (std::size_t i = 0; i < files.size(); i += std::max<std::size_t>(step, 1)) {
    const data_file& file = files[i];
    if (file.bytes == 0) continue;
    const io::unique_fd fd(io::uninterrupted(
        [&] { return ::open(file.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
    if (!fd) continue;
    const auto answer = io::ask_residency(fd.get(), 0, file.bytes);
    if (!answer) return std::nullopt;
    there += answer->share * static_cast<double>(file.bytes);
    all += file.bytes;
    by = answer->by;
  }
  if (all == 0) return std::nullopt;
  return io::residency{there / static_cast<double>(all), by};
}

}  // namespace detail

MILLRACE_INLINE reader_facts facts_of(const std::vector<data_file>& files,
                                      const io_options& options) {
  reader_facts facts;
  facts.files = static_cast<std::int64_t>(files.size());
  const auto table = options.reader.files ? options.reader.files : open_files::of_process();
  const open_file_limits limits = table->limits();
  facts.most_maps = limits.maps;
  for (const data_file& file : files) {
    facts.bytes += file.bytes;
    facts.maps += static_cast<std::int64_t>((file.bytes + limits.map_bytes - 1) / limits.map_bytes);
    const file_system_kind kind = kind_of(file.path);
    if (kind == file_system_kind::network) ++facts.network_files;
    if (kind == file_system_kind::memory) ++facts.memory_files;
  }
  if (const auto room = available_memory()) {
    facts.available = room->bytes;
    facts.available_by = room->by;
  }
  const bool fits = facts.available && facts.bytes <= *facts.available / 2;
  if (!fits && facts.network_files == 0) {
    if (const auto found = detail::residency_of(files)) {
      facts.resident = found->share;
      facts.resident_by = found->by;
    }
    const uring_probe ring = probe_uring();
    facts.uring = ring.usable;
    facts.uring_why = ring.why;
  } else {
    facts.uring_why = "it was not probed";
  }
  facts.to_device = options.to_device;
  facts.request_bytes = options.request_bytes;
  if (facts.to_device && facts.request_bytes >= large_request) {
    const auto library = cufile::of_process(options.cufile.names);
    facts.cufile_direct = library->usable() && library->direct();
    facts.cufile_why = library->why();
  }
  return facts;
}

namespace detail {

/// The requested back end, and where the request came from.
struct asked_reader {
  back_end what = back_end::automatic;
  std::string why;
};

MILLRACE_INLINE asked_reader asked_of(const io_options& options) {
  if (!options.back_end.empty()) {
    return {back_end_of(options.back_end, "the back end for reading"), "requested by name"};
  }
  const char* const set = std::getenv("MILLRACE_IO");  // NOLINT(concurrency-mt-unsafe)
  if (set != nullptr && *set != '\0') {
    return {back_end_of(set, "MILLRACE_IO in the environment"), "requested by MILLRACE_IO"};
  }
  return {};
}

MILLRACE_INLINE std::unique_ptr<range_reader> make_uring(const std::vector<data_file>& files,
                                                         reader_options options, int depth) {
  const uring_probe probe = probe_uring();
#if defined(MILLRACE_HAS_URING)
  if (probe.usable) {
    return std::make_unique<uring_reader>(files, std::move(options), uring_options{.depth = depth});
  }
#else
  (void)depth;
#endif
  options.why += ", but: " + probe.why;
  return std::make_unique<pread_reader>(files, std::move(options));
}

}  // namespace detail

MILLRACE_INLINE std::unique_ptr<range_reader> make_reader(std::vector<data_file> files,
                                                          const io_options& options) {
  const detail::asked_reader asked = detail::asked_of(options);
  back_end take = asked.what;
  reader_options reader = options.reader;
  reader.asked = name_of(asked.what);
  reader.why = asked.why;
  if (take == back_end::automatic) {
    const reader_choice choice = choose_reader(facts_of(files, options));
    take = choice.take;
    reader.why = choice.why;
    if (reader.advice == map_advice::by_memory) {
      reader.advice = choice.advice;
      reader.advice_why = choice.why;
    }
  }
  switch (take) {
    case back_end::pread:
      return std::make_unique<pread_reader>(files, std::move(reader));
    case back_end::io_uring:
      return detail::make_uring(files, std::move(reader), options.uring_depth);
    case back_end::cufile:
      return std::make_unique<cufile_reader>(files, std::move(reader), options.cufile);
    default:
      return std::make_unique<mmap_reader>(std::move(files), std::move(reader));
  }
}

}  // namespace millrace::loader
