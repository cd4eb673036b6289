// SPDX-License-Identifier: Apache-2.0
#include "input/seekable_input.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cassert>

#include <millrace/error.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/file_bytes.hpp"

namespace millrace::preprocess {
namespace {

/// Reads an uncompressed file, starting at a given byte. Many `pread_source` objects may share one
/// descriptor.
class pread_source final : public byte_source {
 public:
  pread_source(const std::filesystem::path& path, std::shared_ptr<const io::unique_fd> fd,
               io::page_cache pages, std::uint64_t begin)
      : path_(path), fd_(std::move(fd)), pages_(pages), at_(begin) {}

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t n = io::pread_some(*fd_, out, at_, path_, pages_);
    at_ += n;
    return n;
  }
  std::uint64_t position_bytes() const noexcept override { return at_; }
  void cancel() noexcept override {}  // reads do not wait

 private:
  const std::filesystem::path& path_;
  std::shared_ptr<const io::unique_fd> fd_;
  io::page_cache pages_;
  std::uint64_t at_;
};

/// Reads an archive, starting at any byte of its text: `from` starts at the part that contains that
/// byte, and the first `skip` bytes of the part are dropped.
class skipping_source final : public byte_source {
 public:
  skipping_source(std::unique_ptr<byte_source> from, std::uint64_t skip) : from_(std::move(from)) {
    std::vector<std::byte> dropped(std::min<std::uint64_t>(skip, 1 << 18));
    for (std::size_t n = 0; skip > 0; skip -= n) {
      n = from_->read(std::span(dropped).first(std::min<std::uint64_t>(skip, dropped.size())));
      if (n == 0) return;  // the next read() finds the end
    }
  }
  std::size_t read(std::span<std::byte> out) override { return from_->read(out); }
  std::uint64_t position_bytes() const noexcept override { return from_->position_bytes(); }
  void cancel() noexcept override { from_->cancel(); }

 private:
  std::unique_ptr<byte_source> from_;
};

bool parts_fit(const std::vector<restart_point>& points, std::uint64_t most) {
  const auto too_large = [&](const restart_point& a, const restart_point& b) {
    return b.text_offset - a.text_offset > most;
  };
  return points.size() > 1 && std::ranges::adjacent_find(points, too_large) == points.end();
}

}  // namespace

std::shared_ptr<const seekable_input> seekable_input::open(const input_file& file,
                                                           std::uint64_t largest_part_bytes) {
  if (!file.regular || is_array(file)) return nullptr;
  std::shared_ptr<seekable_input> made(new seekable_input(file));
  if (file.has_rows()) {
    made->table_ = std::make_shared<table_input>(file);
    made->size_ = made->table_->row_count();
    return made;
  }
  if (file.compressed_with == compression::none) {
    made->size_ = file.size_bytes;
    auto fd = io::open_read_only(file.path);
    // This call is only a hint to the kernel, so a failure does not matter.
    (void)::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
    made->pages_ = io::pages_for_reading(fd, file.size_bytes);
    made->fd_ = std::make_shared<const io::unique_fd>(std::move(fd));
    return made;
  }
  made->points_ = find_restart_points(file);
  if (!made->points_.empty()) {
    expect_whole(file.path, made->points_.back().compressed_offset, file.size_bytes);
  }
  if (!parts_fit(made->points_, largest_part_bytes)) return nullptr;
  made->size_ = made->points_.back().text_offset;
  return made;
}

// Returns the index of the last restart point at or before `offset`. Only for an archive.
std::size_t seekable_input::point_before(std::uint64_t offset) const {
  const auto behind = std::ranges::upper_bound(points_, offset, {}, &restart_point::text_offset);
  return static_cast<std::size_t>(behind - points_.begin()) - 1;
}

std::uint64_t seekable_input::span_end(std::uint64_t begin, std::uint64_t least) const {
  assert(!table_);
  if (size_ - begin <= least) return size_;
  if (points_.empty()) return begin + least;
  return std::ranges::lower_bound(points_, begin + least, {}, &restart_point::text_offset)
      ->text_offset;
}

std::uint64_t seekable_input::offset_before(std::uint64_t compressed_bytes) const {
  if (table_) return table_->row_before(compressed_bytes);
  if (points_.empty()) return std::min(compressed_bytes, size_);
  const auto behind =
      std::ranges::upper_bound(points_, compressed_bytes, {}, &restart_point::compressed_offset);
  return (behind - 1)->text_offset;  // `behind` is not the first point, which is {0, 0}
}

std::uint64_t seekable_input::compressed_bytes(std::uint64_t offset) const {
  if (table_) return table_->byte_of(offset);
  if (points_.empty()) return std::min(offset, size_);
  return points_[point_before(offset)].compressed_offset;
}

std::unique_ptr<byte_source> seekable_input::open_at(std::uint64_t begin) const {
  if (table_) return table_->open_at(begin);
  if (points_.empty()) return std::make_unique<pread_source>(file_.path, fd_, pages_, begin);
  const std::size_t from = point_before(begin);
  auto source = open_input_at(file_, points_[from], std::span(points_).subspan(from + 1));
  return std::make_unique<skipping_source>(std::move(source), begin - points_[from].text_offset);
}

}  // namespace millrace::preprocess
