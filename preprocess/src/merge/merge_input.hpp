// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/file_bytes.hpp"
#include "output/dataset_paths.hpp"

namespace millrace::preprocess {

/// One dataset to merge. The constructor checks the header of its .idx. The .idx is memory-mapped,
/// but only its header is read through the mapping. The arrays in the .idx are read in chunks with
/// pread(2), so memory use does not depend on their size.
class merge_input {
 public:
  explicit merge_input(const std::filesystem::path& prefix)
      : paths_(prefix),
        mapping_(paths_.idx),
        idx_(io::open_read_only(paths_.idx)),
        bin_(io::open_read_only(paths_.bin)) {
    try {
      view_ = formats::parse_mmidx(mapping_.bytes());
    } catch (const format_error& e) {
      throw e.in(paths_.idx);
    }
    // A process that replaces a dataset removes its .idx first: see formats/spec/mmidx.md. So if
    // this check passes, the .bin opened above belongs to this .idx.
    identity_ = mapping_.identity();
    if (io::identity_of(paths_.idx) != identity_) {
      throw io_error(paths_.idx, "open (it is being replaced by another process)", ESTALE);
    }
    const std::uint64_t expected = view_.bin_size_bytes;
    const std::uint64_t size = io::regular_file_size(bin_, paths_.bin);
    if (size != expected) {
      throw format_error(
          paths_.bin, std::min(size, expected),
          fmt::format("expected {} bytes as its .idx says, found {}", expected, size));
    }
    pages_ = io::pages_for_reading(bin_, size);
  }

  const formats::mmidx_view& view() const noexcept { return view_; }
  const dataset_paths& paths() const noexcept { return paths_; }

  /// Fills `out` with entries of one array of the .idx, starting with entry number `first`. The
  /// array begins at offset `array` of the file.
  template <class T>
  void read_index(std::uint64_t array, std::uint64_t first, std::span<T> out) const {
    read(idx_, paths_.idx, array + first * sizeof(T), std::as_writable_bytes(out));
  }
  void read_tokens(std::uint64_t offset, std::span<std::byte> out) const {
    read(bin_, paths_.bin, offset, out);
  }
  const io::unique_fd& bin() const noexcept { return bin_; }
  /// Whether reading the `.bin` should leave its pages in the page cache.
  io::page_cache pages() const noexcept { return pages_; }
  /// The identity of the `.idx`. A dataset that replaces this one has another.
  const io::file_identity& identity() const noexcept { return identity_; }
  std::uint64_t idx_bytes() const noexcept { return mapping_.bytes().size(); }

 private:
  static void read(const io::unique_fd& fd, const std::filesystem::path& path, std::uint64_t offset,
                   std::span<std::byte> out) {
    const std::size_t n = io::pread_some(fd, out, offset, path);
    if (n != out.size()) throw became_shorter(path, offset + n);
  }

  dataset_paths paths_;
  io::file_mapping mapping_;
  io::file_identity identity_;
  io::unique_fd idx_;
  io::unique_fd bin_;
  io::page_cache pages_ = io::page_cache::keep;
  formats::mmidx_view view_;
};

}  // namespace millrace::preprocess
