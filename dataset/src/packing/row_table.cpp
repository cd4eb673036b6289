// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/row_table.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/best_fit.hpp>
#include <millrace/dataset/detail/packing/document_lengths.hpp>
#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/rows.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/atomic_file.hpp>

namespace millrace::dataset {

MILLRACE_INLINE formats::rows_header row_table_header(const index_columns& columns,
                                                      const packing_options& options) {
  check(best_fit_options{options.seq_len, options.pad_documents_to});
  formats::rows_header header;
  header.seq_len = options.seq_len;
  header.pad_documents_to = options.pad_documents_to;
  header.first_document = options.first_document;
  header.last_document =
      options.last_document == -1 ? columns.document_count() : options.last_document;
  if (header.first_document < 0 || header.last_document < header.first_document ||
      header.last_document > columns.document_count()) {
    throw config_error("documents " + std::to_string(header.first_document) + " up to " +
                       std::to_string(header.last_document) + " of " + columns.prefix().string() +
                       " are to be packed, expected an ascending range within 0 to " +
                       std::to_string(columns.document_count()));
  }
  header.idx_bytes = static_cast<std::int64_t>(columns.idx_size_bytes());
  header.bin_bytes = static_cast<std::int64_t>(columns.bin_size_bytes());
  return header;
}

namespace detail {

/// Returns the root of PREFIX.sum. Returns nullopt if there is no PREFIX.sum, or if it describes
/// files of other sizes.
MILLRACE_INLINE std::optional<std::array<std::byte, 32>> root_of(const index_columns& columns) {
  try {
    const auto file = map_sidecar(sidecar_paths(columns.prefix()).sum);
    if (!file) return std::nullopt;
    const formats::sum_view sum = formats::parse_sum(file->bytes());
    if (sum.bin_bytes != columns.bin_size_bytes() || sum.idx_bytes != columns.idx_size_bytes()) {
      return std::nullopt;
    }
    std::array<std::byte, 32> root{};
    std::ranges::copy(sum.root, root.begin());
    return root;
  } catch (const error&) {
    return std::nullopt;  // `verify` reports a damaged .sum; here, the lengths are compared instead
  }
}

/// The CRC-32C of the lengths followed by the document index. If the index is not mapped, reads it
/// in blocks of at most one megabyte.
MILLRACE_INLINE std::uint32_t lengths_crc(const index_columns& columns) {
  constexpr std::int64_t at_once = 1 << 17;
  std::uint32_t crc = 0;
  std::vector<std::byte> scratch;
  const std::int64_t sequences = columns.sequence_count();
  for (std::int64_t i = 0; i < sequences; i += at_once) {
    const std::int64_t count = std::min(at_once, sequences - i);
    crc = formats::crc32c(columns.lengths(i, count, scratch).bytes(), crc);
  }
  const std::int64_t starts = columns.document_count() + 1;
  for (std::int64_t d = 0; d < starts; d += at_once) {
    const std::int64_t count = std::min(at_once, starts - d);
    crc = formats::crc32c(columns.document_starts(d, count, scratch).bytes(), crc);
  }
  columns.check_there();
  return crc;
}

MILLRACE_INLINE void expect_fit(const formats::rows_header& found,
                                const formats::rows_header& asked, const index_columns& columns) {
  const auto expect = [&](std::uint64_t offset, const char* what,
                          std::int64_t formats::rows_header::*field) {
    if (found.*field == asked.*field) return;
    throw format_error(offset, std::string(what) + " is " + std::to_string(found.*field) +
                                   ", expected " + std::to_string(asked.*field));
  };
  expect(16, "seq_len", &formats::rows_header::seq_len);
  expect(24, "pad_documents_to", &formats::rows_header::pad_documents_to);
  expect(32, "the first document", &formats::rows_header::first_document);
  expect(40, "the end of the documents", &formats::rows_header::last_document);
  expect(56, "the size of the .idx", &formats::rows_header::idx_bytes);
  expect(64, "the size of the .bin", &formats::rows_header::bin_bytes);
  if (found.has_root != 0) {
    if (const auto root = root_of(columns)) {
      if (*root == found.root) return;
      throw format_error(80, "the root is " + formats::hex(found.root) + ", expected " +
                                 formats::hex(*root) + ", as in the .sum");
    }
  }
  const std::uint32_t crc = lengths_crc(columns);
  if (found.idx_crc == crc) return;
  throw format_error(72, "the checksum of the lengths and the document index is " +
                             formats::hex(found.idx_crc) + ", expected " + formats::hex(crc) +
                             ", as in the .idx");
}

/// @param why  set to the reason why there is a table that cannot be used
MILLRACE_INLINE std::optional<row_table> read_row_table(const index_columns& columns,
                                                        const formats::rows_header& asked,
                                                        const std::filesystem::path& path,
                                                        std::string& why) {
  try {
    const auto file = map_sidecar(path);
    if (!file) return std::nullopt;
    const formats::rows_view rows = formats::parse_rows(file->bytes());
    expect_fit(rows.header, asked, columns);
    return row_table{rows.header, rows.ends.to_vector(), true, {}, {}};
  } catch (const format_error& e) {
    why = e.path().empty() ? e.in(path).what() : e.what();
  } catch (const error& e) {
    why = e.what();
  }
  return std::nullopt;
}

/// Calls `work(i)` for i from 0 to count - 1, in several threads. Each thread calls `make_worker`
/// to create its own `work`. Rethrows the first exception after all threads have ended.
template <class MakeWorker>
void in_parallel(std::size_t count, int threads, const MakeWorker& make_worker) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto run = [&] {
    try {
      auto work = make_worker();
      for (std::size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  const std::size_t asked = threads > 0 ? static_cast<std::size_t>(threads)
                                        : std::max(1U, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> helpers;
    for (std::size_t t = 1; t < std::min(asked, count); ++t) helpers.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace detail

MILLRACE_INLINE row_table make_row_table(const index_columns& columns,
                                         const packing_options& options) {
  row_table table;
  table.header = row_table_header(columns, options);
  const auto blocks = static_cast<std::size_t>(table.header.block_count());
  table.ends.resize(blocks);
  std::atomic<std::int64_t> tokens = 0;
  constexpr std::size_t run = 16;  // blocks per task, so that threads rarely share a cache line
  detail::in_parallel((blocks + run - 1) / run, options.threads, [&] {
    return [&, packer = best_fit({options.seq_len, options.pad_documents_to}),
            lengths = std::vector<std::int64_t>()](std::size_t i) mutable {
      for (std::size_t b = i * run; b < std::min(blocks, (i + 1) * run); ++b) {
        const std::int64_t first =
            table.header.first_document + static_cast<std::int64_t>(b) * packing_block;
        const std::int64_t last = std::min(table.header.last_document, first + packing_block);
        document_lengths(columns, first, last, lengths);
        tokens += std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
        table.ends[b] = packer.pack(lengths);
      }
    };
  });
  std::partial_sum(table.ends.begin(), table.ends.end(), table.ends.begin());
  table.header.tokens = tokens;
  return table;
}

MILLRACE_INLINE std::filesystem::path row_table_path(const index_columns& columns,
                                                     const packing_options& options) {
  const auto header = row_table_header(columns, options);
  const bool whole = header.first_document == 0 && header.last_document == columns.document_count();
  std::string suffix = ".rows-" + std::to_string(header.seq_len);
  if (!whole || header.pad_documents_to != 1) {
    suffix += '-' + std::to_string(header.pad_documents_to);
  }
  if (!whole) {
    suffix +=
        '-' + std::to_string(header.first_document) + '-' + std::to_string(header.last_document);
  }
  std::filesystem::path path = columns.prefix();
  return path += suffix;
}

MILLRACE_INLINE row_table open_row_table(const index_columns& columns,
                                         const packing_options& options,
                                         const std::filesystem::path& path) {
  if (path.empty()) return make_row_table(columns, options);
  const auto asked = row_table_header(columns, options);
  std::string why;
  if (auto found = detail::read_row_table(columns, asked, path, why)) return *std::move(found);
  row_table table = make_row_table(columns, options);
  table.not_used = std::move(why);
  table.header.idx_crc = detail::lengths_crc(columns);
  if (const auto root = detail::root_of(columns)) {
    table.header.has_root = 1;
    table.header.root = *root;
  }
  try {
    io::atomic_file file(path);
    file.append(formats::encode_rows(table.header, table.ends));
    file.commit();
  } catch (const io_error& e) {
    table.not_written = e.what();  // e.g. no permission, or another rank is writing the same file
  }
  return table;
}

}  // namespace millrace::dataset
