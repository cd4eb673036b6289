// SPDX-License-Identifier: Apache-2.0
#include "byte_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_streambuf.hpp>

#include <millrace/error.hpp>
#include <millrace/io/unique_fd.hpp>

namespace millrace::preprocess {
namespace {

constexpr std::size_t packed_chunk_bytes = std::size_t{256} << 10;

/// read(2), not pread(2), so that a pipe is an input like any other.
class plain_source final : public byte_source {
 public:
  explicit plain_source(const std::filesystem::path& path)
      : path_(path), fd_(io::open_read_only(path)) {
    // Advice only: its failure (a pipe, for one) changes nothing that matters.
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  std::size_t read(std::span<std::byte> out) override {
    const ssize_t n = io::uninterrupted([&] { return ::read(fd_.get(), out.data(), out.size()); });
    if (n < 0) throw io_error(path_, "read", errno);
    position_ += static_cast<std::size_t>(n);
    return static_cast<std::size_t>(n);
  }

  std::uint64_t position_bytes() const noexcept override { return position_; }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  io::unique_fd fd_;
  std::uint64_t position_ = 0;
};

/// Boost's gzip filter: any number of members, header and checksums checked. What the filter had
/// of the last `given_at_once` bytes when it met damage is lost.
class gzip_source final : public byte_source {
 public:
  explicit gzip_source(const std::filesystem::path& path) : file_(path) {
    buffer_.push(
        boost::iostreams::gzip_decompressor(boost::iostreams::gzip::default_window_bits,
                                            static_cast<std::streamsize>(packed_chunk_bytes)),
        given_at_once);
    buffer_.push(device{&file_}, static_cast<std::streamsize>(packed_chunk_bytes));
  }

  std::size_t read(std::span<std::byte> out) override {
    // The first call may fail; the second only copies what the first one has brought.
    try {
      if (buffer_.sgetc() == std::char_traits<char>::eof()) return 0;
    } catch (const boost::iostreams::gzip_error&) {
      throw format_error(file_.path(), produced_,
                         "damaged or cut off gzip data, after the decompressed bytes given");
    }
    const std::streamsize n =
        buffer_.sgetn(reinterpret_cast<char*>(out.data()),
                      std::min(static_cast<std::streamsize>(out.size()), buffer_.in_avail()));
    produced_ += static_cast<std::size_t>(n);
    return static_cast<std::size_t>(n);
  }

  std::uint64_t position_bytes() const noexcept override { return file_.position_bytes(); }

 private:
  struct device {
    using char_type = char;
    using category = boost::iostreams::source_tag;
    std::streamsize read(char* out, std::streamsize size) const {
      const std::size_t n =
          file->read(std::as_writable_bytes(std::span(out, static_cast<std::size_t>(size))));
      return n == 0 ? -1 : static_cast<std::streamsize>(n);
    }
    plain_source* file;
  };

  static constexpr std::streamsize given_at_once = 16 << 10;

  plain_source file_;
  boost::iostreams::filtering_streambuf<boost::iostreams::input> buffer_;
  std::uint64_t produced_ = 0;
};

/// Any number of zstd frames, skippable ones among them.
class zstd_source final : public byte_source {
 public:
  explicit zstd_source(const std::filesystem::path& path)
      : file_(path), packed_(packed_chunk_bytes), stream_(ZSTD_createDCtx()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }

  std::size_t read(std::span<std::byte> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0) {
      // Inside a frame the last call may have kept bytes for which `out` had no room.
      if (from_.pos == from_.size && !(was_full_ && inside_frame_)) {
        from_ = {packed_.data(), file_.read(packed_), 0};
        if (from_.size == 0) {
          if (inside_frame_) fail("zstd data is cut off in the middle of a frame");
          break;
        }
      }
      const std::size_t hint = ZSTD_decompressStream(stream_.get(), &to, &from_);
      if (ZSTD_isError(hint) != 0) {
        fail(std::string("damaged zstd data: ") + ZSTD_getErrorName(hint));
      }
      inside_frame_ = hint != 0;
      was_full_ = to.pos == to.size;
    }
    produced_ += to.pos;
    return to.pos;
  }

  std::uint64_t position_bytes() const noexcept override { return file_.position_bytes(); }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw format_error(file_.path(), produced_, problem + ", after the decompressed bytes given");
  }
  struct free_stream {
    void operator()(ZSTD_DCtx* stream) const noexcept { ZSTD_freeDCtx(stream); }
  };

  plain_source file_;
  std::vector<std::byte> packed_;
  std::unique_ptr<ZSTD_DCtx, free_stream> stream_;
  ZSTD_inBuffer from_{nullptr, 0, 0};
  bool inside_frame_ = false;
  bool was_full_ = false;  // of the last call's `out`
  std::uint64_t produced_ = 0;
};

}  // namespace

std::unique_ptr<byte_source> open_input(const input_file& file) {
  switch (file.packing) {
    case compression::gzip:
      return std::make_unique<gzip_source>(file.path);
    case compression::zstd:
      return std::make_unique<zstd_source>(file.path);
    case compression::none:
      break;
  }
  return std::make_unique<plain_source>(file.path);
}

}  // namespace millrace::preprocess
