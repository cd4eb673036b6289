// SPDX-License-Identifier: Apache-2.0
#include "input/giant_line_reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/line_ends.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;

// Creates a file without a name in `folder`. Its space is freed when its last descriptor is closed.
io::unique_fd unnamed_file(const std::filesystem::path& folder) {
  io::unique_fd fd(io::uninterrupted(
      [&] { return ::open(folder.c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600); }));
  if (fd) return fd;
  std::string name = (folder / ".millrace-line-XXXXXX").string();  // if O_TMPFILE is unsupported
  fd = io::unique_fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd) throw io_error(folder, "open (a file for a long line)", errno);
  (void)::unlink(name.c_str());
  return fd;
}

/// Puts one giant line together from consecutive pieces.
class line_taker {
 public:
  line_taker(const line_place& place, const read_limits& limits) {
    line_.offset_bytes = place.offset_bytes;
    line_.file = place.plain;
    line_.path = place.input;
    if (place.plain) {
      line_.begin = place.offset_bytes;
    } else {
      copy_.emplace(unnamed_file(limits.spool_folder));
      line_.path = limits.spool_folder / "(a copy of a long line)";
    }
  }

  void take(std::string_view bytes) {
    if (line_.size_bytes == 0 && line_.offset_bytes == 0) line_.mark_bytes = mark_bytes_of(bytes);
    const std::string_view text = bytes.substr(line_.size_bytes == 0 ? line_.mark_bytes : 0);
    line_.is_blank = line_.is_blank && text.find_first_not_of(" \t\r\n") == text.npos;
    const auto raw = std::as_bytes(std::span(bytes));
    if (copy_) io::pwrite_all(*copy_, raw, line_.size_bytes, line_.path);
    line_.crc32c = formats::crc32c(raw, line_.crc32c);
    line_.size_bytes += bytes.size();
    tail_ += bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 2));
    if (tail_.size() > 2) tail_.erase(0, tail_.size() - 2);
  }
  bool has_return_at_end() const noexcept { return tail_.ends_with('\r'); }

  giant_line finish() {
    line_.end = line_.begin + line_.size_bytes - line_end_bytes(tail_);
    line_.begin += line_.mark_bytes;
    if (copy_) line_.file = std::make_shared<const io::unique_fd>(*std::move(copy_));
    return std::move(line_);
  }

 private:
  giant_line line_;
  std::optional<io::unique_fd> copy_;
  std::string tail_;  // the last two bytes of the line so far
};

}  // namespace

followed_line follow_giant_line(byte_source& source, std::span<const std::byte> head,
                                const line_place& place, const read_limits& limits) {
  line_taker taker(place, limits);
  taker.take({reinterpret_cast<const char*>(head.data()), head.size()});
  followed_line followed;
  std::vector<std::byte> chunk(chunk_bytes);
  for (bool found = false; !found;) {
    expect_going_on(limits.stop);
    const std::size_t n = source.read(chunk);
    followed.ended = n == 0;
    if (followed.ended) break;
    const std::string_view text(reinterpret_cast<const char*>(chunk.data()), n);
    std::size_t size = next_line(text, 0, false);
    if (taker.has_return_at_end()) size = text.front() == '\n' ? 1 : 0;
    found = size != text.npos;
    taker.take(text.substr(0, size));
    if (found)
      followed.rest.assign(chunk.begin() + static_cast<std::ptrdiff_t>(size),
                           chunk.begin() + static_cast<std::ptrdiff_t>(n));
  }
  followed.line = taker.finish();
  return followed;
}

}  // namespace millrace::preprocess
