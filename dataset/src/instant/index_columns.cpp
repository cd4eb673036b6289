// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/index_columns.hpp>

#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <thread>

#include <millrace/dataset/detail/index_errors.hpp>
#include <millrace/dataset/detail/lost_pages.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/detail/unique_fd.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE std::filesystem::path suffixed_path(std::filesystem::path prefix,
                                                    const char* suffix) {
  return prefix += suffix;
}

}  // namespace detail

MILLRACE_INLINE index_columns::index_columns(const std::filesystem::path& prefix,
                                             index_access access)
    : idx_path_(detail::suffixed_path(prefix, ".idx")) {
  detail::check_prefix(prefix);
  const auto bin_path = detail::suffixed_path(prefix, ".bin");
  bin_bytes_ = open_unreplaced(bin_path);
  const std::uint64_t size = io::regular_file_size(idx_, idx_path_);
  try {
    std::array<std::byte, formats::mmidx_header_bytes> head{};
    const std::size_t got = io::pread_some(idx_, head, 0, idx_path_);
    layout_ = formats::parse_mmidx_layout(std::span(head).first(got), size);
    if (access != index_access::pread) map(size, access);
    const std::uint64_t expected = formats::check_mmidx_edges(
        layout_, [&]<class T>(std::uint64_t offset, T& value) { value = entry<T>(offset); });
    if (bin_bytes_ != expected) {
      throw format_error(bin_path, std::min(bin_bytes_, expected),
                         std::to_string(bin_bytes_) + " bytes, expected " +
                             std::to_string(expected) + ", where the last sequence of " +
                             idx_path_.filename().string() + " ends");
    }
    const std::size_t item = formats::size_bytes(layout_.type);
    if (bin_bytes_ % item != 0) {
      const std::int64_t i = sequence_count() - 1;
      detail::throw_bad_pointer(idx_path_, pointer_offset(i), i, length(i), pointer(i), item,
                                bin_bytes_);
    }
  } catch (const format_error& e) {
    if (!e.path().empty()) throw;
    throw e.in(idx_path_);
  }
  token_count_ = static_cast<std::int64_t>(bin_bytes_ / formats::size_bytes(layout_.type));
}

MILLRACE_INLINE index_columns::index_columns(const indexed_dataset& data)
    : idx_path_(data.idx_path()),
      layout_(data.index()),
      bin_bytes_(data.bin_size_bytes()),
      token_count_(data.token_count()) {
  // The bytes of the whole file. Their address is computed from the address of the document index,
  // which is never empty.
  bytes_ = {data.index().document_index.bytes().data() - layout_.document_index_offset(),
            static_cast<std::size_t>(data.idx_size_bytes())};
}

/// Opens the `.idx` and returns the size that the `.bin` had while this `.idx` was in place.
MILLRACE_INLINE std::uint64_t index_columns::open_unreplaced(
    const std::filesystem::path& bin_path) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (attempt != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    try {
      idx_ = io::open_read_only(idx_path_, O_NONBLOCK);
      struct ::stat status {};
      if (::fstat(idx_.get(), &status) != 0) throw io_error(idx_path_, "fstat", errno);
      const io::unique_fd bin = io::open_read_only(bin_path, O_NONBLOCK);
      const std::uint64_t bin_bytes = io::regular_file_size(bin, bin_path);
      if (io::identity_of(idx_path_) == io::file_identity{status.st_dev, status.st_ino}) {
        return bin_bytes;
      }
    } catch (const io_error& e) {
      if (attempt == 0 || e.code() != ENOENT || e.path() != idx_path_) throw;
    }
  }
  throw io_error(idx_path_, "open (it is being replaced by another process)", ESTALE);
}

/// Maps the `.idx` if possible. If mmap fails, entries are later read through the file descriptor
/// instead; only a read that fails throws.
MILLRACE_INLINE void index_columns::map(std::uint64_t size, index_access access) {
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, idx_.get(), 0);
  if (address == MAP_FAILED) return;
  region_ = io::detail::unique_region({address, size});
  bytes_ = {static_cast<const std::byte*>(address), size};
  watch_ = lost_page_watch(bytes_);
  if (access != index_access::map_with_read_ahead) {
    (void)::madvise(address, size, MADV_RANDOM);  // read-ahead would fetch unneeded pages
  }
  idx_.reset();
}

MILLRACE_INLINE void index_columns::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (io::pread_some(idx_, out, offset, idx_path_) != out.size()) {
    throw format_error(idx_path_, offset, "the file became shorter while it was in use");
  }
}

}  // namespace millrace::dataset
